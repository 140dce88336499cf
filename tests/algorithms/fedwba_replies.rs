//! FedWBA: replies that no honest client sends, and what the server makes of them.

use fedstein::array::{Array, Values};
use fedstein::protocol::{Ask, Message, Reply, Request};

use crate::personal_fedwba::{D, FIRST, Site, digits};

/// A reply of this client with ten rows.
fn reply(client: usize, message: Message) -> Reply {
    let request = Request::new(1, client, Ask::Train, Message::default());
    request.reply(message.with_scalar("rows", 10.0))
}

#[test]
fn particles_whose_distances_are_not_finite_in_their_precision_are_refused() {
    // Distances are of up to twice the length, and their squares four times as large again: the largest ‖θ‖² is a
    // sixteenth of the largest number, 2.1268e37 in f32 and 1.1236e307 in f64. The first two coordinates of the last of
    // three particles:
    let site = Site::new(&digits("", ""));
    let checked = |[first, second]: [f64; 2], is_single: bool| {
        let mut rows = vec![0.0; 3 * D];
        (rows[2 * D], rows[2 * D + 1]) = (first, second);
        let values = match is_single {
            true => Values::F32(rows.iter().map(|value| *value as f32).collect()),
            false => Values::F64(rows),
        };
        let array = Array { shape: vec![3, D], values };
        site.server.check(&reply(0, Message::default().with_array("particles", array)))
    };
    for (coordinates, in_single, in_double) in [
        ([4.6e18, 0.0], true, true),  // 2.116e37
        ([4.7e18, 0.0], false, true), // 2.209e37
        ([-4.7e18, 0.0], false, true),
        ([3.3e18, 0.0], true, true),     // 1.089e37
        ([3.3e18, 3.3e18], false, true), // 2.178e37
        ([0.0, 1e153], false, true),     // 1e306; beyond f32 altogether
        ([0.0, 1e154], false, false),    // 1e308
    ] {
        for (is_single, is_near) in [(true, in_single), (false, in_double)] {
            let checked = checked(coordinates, is_single);
            assert_eq!(checked.is_ok(), is_near, "{coordinates:?}, f32: {is_single}: {checked:?}");
            if let Err(reason) = checked {
                assert!(reason.contains("\"particles\" is so far from 0"), "{reason}");
            }
        }
    }
    // Each particle is judged by itself, and shared layers are too.
    let far = |shape: [usize; 2], number: f32| {
        let values = (0..shape[0] * shape[1]).map(|at| if at % shape[1] == 0 { number } else { 0.0 }).collect();
        Array { shape: shape.to_vec(), values: Values::F32(values) }
    };
    let three = Message::default().with_array("particles", far([3, D], 4.6e18));
    assert_eq!(site.server.check(&reply(0, three)), Ok(()));
    let site = Site::new(&digits("shared_layers = [1]", ""));
    let shared = |number: f32| {
        let message = Message::default().with_array("particles", far([3, D - FIRST], 1.0));
        site.server.check(&reply(0, message.with_array("shared", far([1, FIRST], number))))
    };
    assert_eq!(shared(4.6e18), Ok(()));
    assert!(shared(4.7e18).unwrap_err().contains("\"shared\" is so far from 0"));
}

#[test]
fn an_attackers_shared_layers_do_not_pull_those_of_the_others() {
    // All three send the same Bayesian layer, so that it does not say who is damaged. Their shared layers lie on a line,
    // at 0, at 1 and at 1,000,000: the geometric median is the one at 1, and without the farthest the mean is ½.
    let own: Vec<f64> = (0..3 * (D - FIRST)).map(|at| (at as f64).sin()).collect();
    for (rule, want, within) in [("median", 1.0, 1e-3), ("trimmed", 0.5, 1e-9)] {
        for places in [[0.0, 1.0, 1e6], [1e6, 0.0, 1.0], [1.0, 1e6, 0.0]] {
            let more = format!("[schedule]\nclients = 3\n[federation]\nrobust = \"{rule}\"\nrobust_trim = 0.4");
            let mut site = Site::new(&digits("shared_layers = [1]", &more));
            let replies = places.into_iter().enumerate().map(|(client, place)| {
                let bayesian = Array { shape: vec![3, D - FIRST], values: Values::F64(own.clone()) };
                let shared = Array { shape: vec![1, FIRST], values: Values::F64(vec![place; FIRST]) };
                reply(client, Message::default().with_array("particles", bayesian).with_array("shared", shared))
            });
            site.server.aggregate(replies.collect()).unwrap();
            for (particle, own) in site.global().chunks_exact(D).zip(own.chunks_exact(D - FIRST)) {
                let (shared, bayesian) = particle.split_at(FIRST);
                let far = shared.iter().find(|value| (*value - want).abs() > within);
                assert!(far.is_none(), "{rule}, {places:?}: {far:?}, not {want}");
                let moved = bayesian.iter().zip(own).find(|(got, own)| (*got - *own).abs() > 1e-9);
                assert!(moved.is_none(), "{rule}, {places:?}: {moved:?}");
            }
        }
    }
}
