//! Robust rules: what is done to replies before an algorithm sees them, so that a few poisoned ones have bounded influence.
//!
//! Validated requests and replies in, replies out:
//! - `norm-clip`: each array's change, reply − sent (the array itself where it is a change already), is shortened to c times
//!   the median length of the round's changes, or of the latest accepted ones in a round of one or two replies. Lengths
//!   are root mean squares, so that replies with different numbers of rows compare. Source: Sun et al. 2019.
//! - `median`, `trimmed`: every reply is replaced by the coordinate-wise median or β-trimmed mean of all replies of the
//!   round, so that a server that averages, with whatever weights, takes over that. Source: Yin et al. 2018.
//!
//! FedWBA's particles have no common numbering; its server has a median and a trimmed barycenter of its own
//! ([`crate::ot::robust`]).

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::event::{Event, EventKind};
use crate::array::{Array, Values};
use crate::protocol::{Message, Reply, Request};
use crate::statistics::{clipping, median, trimmed, trimmed_mean};

/// How replies are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Robust {
    /// As the algorithm says.
    #[default]
    None,
    /// Changes are shortened to this many times the median length.
    NormClip(f64),
    /// Coordinate-wise median.
    Median,
    /// Coordinate-wise mean without this share of the replies at either end.
    Trimmed(f64),
}

/// Fewest lengths that have a median worth the name.
const ENOUGH: usize = 3;
/// Lengths remembered an array.
const REMEMBERED: usize = 50;

/// The lengths of the latest accepted changes, by array, as they were after clipping: as bits, which every file format
/// keeps exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Norms(BTreeMap<String, VecDeque<u64>>);

impl Norms {
    fn remember(&mut self, name: &str, norm: f64) {
        let norms = self.0.entry(name.to_owned()).or_default();
        norms.push_back(norm.to_bits());
        if norms.len() > REMEMBERED {
            norms.pop_front();
        }
    }

    fn latest(&self, name: &str) -> Vec<f64> {
        self.0.get(name).map(|norms| norms.iter().map(|bits| f64::from_bits(*bits)).collect()).unwrap_or_default()
    }
}

/// The replies as the algorithm sees them.
pub(super) fn combine(
    robust: Robust,
    changes: &[&str],
    requests: &[Request],
    replies: &mut [Reply],
    norms: &mut Norms,
    events: &mut Vec<Event>,
) {
    match robust {
        Robust::None => {}
        Robust::NormClip(factor) => clip(factor, changes, requests, replies, norms, events),
        Robust::Median => replace(replies, median),
        Robust::Trimmed(share) => {
            let cut = trimmed(share, replies.len());
            replace(replies, |values| trimmed_mean(values, cut));
        }
    }
}

fn clip(
    factor: f64,
    changes: &[&str],
    requests: &[Request],
    replies: &mut [Reply],
    norms: &mut Norms,
    events: &mut Vec<Event>,
) {
    let names: Vec<String> = requests.first().into_iter().flat_map(|r| r.message.arrays.keys().cloned()).collect();
    let mut shortest: Vec<f64> = vec![1.0; replies.len()];
    for name in &names {
        let origin = |request: &Request| match changes.contains(&name.as_str()) {
            true => None,
            false => request.message.arrays.get(name).map(|array| array.values.to_f64()),
        };
        let origins: Vec<Option<Vec<f64>>> = requests.iter().map(origin).collect();
        let moved: Vec<f64> = origins.iter().zip(&*replies).map(|(from, reply)| length(from, reply, name)).collect();
        // Clients that learned nothing say nothing about what is usual.
        let mut known: Vec<f64> = moved.iter().copied().filter(|norm| *norm > 0.0).collect();
        if known.len() < ENOUGH {
            known = norms.latest(name);
        }
        let bound = if known.len() < ENOUGH { f64::INFINITY } else { factor * median(&mut known) };
        for (((from, reply), norm), shortest) in origins.iter().zip(&mut *replies).zip(moved).zip(&mut shortest) {
            let scale = clipping(norm, bound);
            if scale < 1.0
                && let Some(array) = reply.message.arrays.get_mut(name)
            {
                scale_change(array, from.as_deref(), scale);
            }
            if norm > 0.0 {
                norms.remember(name, norm * scale);
            }
            *shortest = shortest.min(scale);
        }
    }
    for ((request, reply), scale) in requests.iter().zip(replies).zip(shortest).filter(|(_, scale)| *scale < 1.0) {
        events.push(Event::new(request.round, request.attempt, reply.client, EventKind::Clipped).with_value(scale));
    }
}

/// Root mean square of an array's change.
fn length(from: &Option<Vec<f64>>, reply: &Reply, name: &str) -> f64 {
    let Some(array) = reply.message.arrays.get(name) else { return 0.0 };
    let values = array.values.to_f64();
    let squares: f64 = match from {
        Some(from) => values.iter().zip(from).map(|(to, from)| (to - from).powi(2)).sum(),
        None => values.iter().map(|value| value.powi(2)).sum(),
    };
    (squares / values.len().max(1) as f64).sqrt()
}

/// from + scale·(to − from), from 0 where there is no origin.
pub(super) fn scale_change(array: &mut Array, from: Option<&[f64]>, scale: f64) {
    let from = |at: usize| from.map_or(0.0, |from| from[at]);
    match &mut array.values {
        Values::F32(values) => values.iter_mut().enumerate().for_each(|(at, value)| {
            *value = (from(at) + scale * (f64::from(*value) - from(at))) as f32;
        }),
        Values::F64(values) => values.iter_mut().enumerate().for_each(|(at, value)| {
            *value = from(at) + scale * (*value - from(at));
        }),
    }
}

/// Gives every reply the same arrays: the statistic of each coordinate over all replies.
fn replace(replies: &mut [Reply], statistic: impl Fn(&mut [f64]) -> f64) {
    let Some(first) = replies.first() else { return };
    let mut common = Message::default();
    for (name, like) in &first.message.arrays {
        let rows: Vec<Vec<f64>> =
            replies.iter().filter_map(|reply| Some(reply.message.arrays.get(name)?.values.to_f64())).collect();
        let of = |at: usize| statistic(&mut rows.iter().filter_map(|row| row.get(at)).copied().collect::<Vec<f64>>());
        let values = (0..like.values.len()).map(of);
        let values = match like.values {
            Values::F32(_) => Values::F32(values.map(|value| value as f32).collect()),
            Values::F64(_) => Values::F64(values.collect()),
        };
        common = common.with_array(name, Array { shape: like.shape.clone(), values });
    }
    replies.iter_mut().for_each(|reply| reply.message.arrays.clone_from(&common.arrays));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Ask;

    fn message(values: &[f32]) -> Message {
        let array = Array { shape: vec![1, values.len()], values: Values::F32(values.to_vec()) };
        Message::default().with_array("particles", array)
    }

    fn round(sent: &[f32], replies: &[&[f32]]) -> (Vec<Request>, Vec<Reply>) {
        let request = |client| Request::new(4, client, Ask::Train, message(sent));
        let requests: Vec<Request> = (0..replies.len()).map(request).collect();
        let replies = requests.iter().zip(replies).map(|(request, values)| request.reply(message(values))).collect();
        (requests, replies)
    }

    fn values(reply: &Reply) -> Vec<f64> {
        reply.message.arrays["particles"].values.to_f64()
    }

    fn combined(robust: Robust, changes: &[&str], sent: &[f32], replies: &[&[f32]]) -> (Vec<Vec<f64>>, Vec<Event>) {
        let (requests, mut replies) = round(sent, replies);
        let mut events = Vec::new();
        combine(robust, changes, &requests, &mut replies, &mut Norms::default(), &mut events);
        (replies.iter().map(values).collect(), events)
    }

    #[test]
    fn the_median_of_replies_is_taken_in_each_coordinate() {
        let (replies, _) = combined(Robust::Median, &[], &[0.0, 0.0], &[&[1.0, 9.0], &[2.0, 2.0], &[900.0, 3.0]]);
        assert_eq!(replies, vec![vec![2.0, 3.0]; 3]);
    }

    #[test]
    fn a_trimmed_mean_leaves_the_same_number_out_at_both_ends() {
        let of: [&[f32]; 5] = [&[1.0], &[2.0], &[3.0], &[-800.0], &[900.0]];
        assert_eq!(combined(Robust::Trimmed(0.2), &[], &[0.0], &of).0, vec![vec![2.0]; 5]);
        assert_eq!((trimmed(0.2, 4), trimmed(0.2, 5), trimmed(0.49, 3), trimmed(0.4, 2)), (0, 1, 1, 0));
    }

    #[test]
    fn a_long_change_is_shortened_to_the_median_length_and_keeps_its_direction() {
        let (replies, events) =
            combined(Robust::NormClip(1.0), &[], &[10.0, 10.0], &[&[13.0, 14.0], &[10.0, 11.0], &[10.0, 12.0]]);
        // Lengths 5, 1, 2 over √2: the median is 2/√2.
        assert!((replies[0][0] - 11.2).abs() < 1e-6 && (replies[0][1] - 11.6).abs() < 1e-6, "{replies:?}");
        assert_eq!(replies[1..], [vec![10.0, 11.0], vec![10.0, 12.0]]);
        assert_eq!(events.len(), 1);
        assert!((events[0].client, events[0].kind) == (0, EventKind::Clipped));
        assert!((events[0].value.unwrap() - 0.4).abs() < 1e-12);
        // What is a change already has no origin.
        let (replies, _) = combined(Robust::NormClip(1.0), &["particles"], &[10.0], &[&[9.0], &[1.0], &[2.0]]);
        assert_eq!(replies, [vec![2.0], vec![1.0], vec![2.0]]);
    }

    #[test]
    fn clients_that_learned_nothing_do_not_hold_the_others_back() {
        let of: [&[f32]; 7] = [&[0.0], &[1.0], &[0.0], &[2.0], &[0.0], &[0.0], &[9.0]];
        let (replies, _) = combined(Robust::NormClip(1.0), &[], &[0.0], &of);
        assert_eq!(replies.concat(), [0.0, 1.0, 0.0, 2.0, 0.0, 0.0, 2.0]);
    }

    #[test]
    fn a_lone_reply_is_measured_against_those_before_it_once_there_are_three() {
        let (mut norms, mut events, mut got) = (Norms::default(), Vec::new(), Vec::new());
        for change in [1.0, 2.0, 3.0, 100.0, 100.0] {
            let (requests, mut replies) = round(&[0.0], &[&[change]]);
            combine(Robust::NormClip(1.0), &[], &requests, &mut replies, &mut norms, &mut events);
            got.push(values(&replies[0])[0]);
        }
        assert_eq!(got, [1.0, 2.0, 3.0, 2.0, 2.0], "clipped lengths are remembered, so the bound cannot be pulled up");
    }
}
