//! Applies the robust rule of a run to the replies of a round.

use std::collections::BTreeSet;

use super::event::{Event, EventKind};
use super::fault_policy::Rules;
use super::robust::{Norms, Robust};
use crate::array::{Array, Values};
use crate::protocol::{Message, Reply, Request};
use crate::statistics::{clipping, median, trimmed, trimmed_mean};

/// The least number of lengths for which a median is taken.
const ENOUGH: usize = 3;

/// Applies the robust rule to the replies of clients with these numbers of rows, by id.
pub(super) fn combine(
    rules: &Rules,
    rows: &[usize],
    requests: &[Request],
    replies: &mut [Reply],
    norms: &mut Norms,
    events: &mut Vec<Event>,
) {
    match rules.robust {
        Robust::None => {}
        Robust::NormClip(factor) => clip(factor, rules, rows, requests, replies, norms, events),
        Robust::Median => replace(replies, median),
        Robust::Trimmed(share) => {
            let cut = trimmed(share, replies.len());
            replace(replies, |values| trimmed_mean(values, cut));
        }
    }
}

fn clip(
    factor: f64,
    rules: &Rules,
    rows: &[usize],
    requests: &[Request],
    replies: &mut [Reply],
    norms: &mut Norms,
    events: &mut Vec<Event>,
) {
    // A reply may have arrays that no request had, such as those of a client's first visit.
    let names: BTreeSet<String> = replies.iter().flat_map(|reply| reply.message.arrays.keys().cloned()).collect();
    let mut shortest: Vec<f64> = vec![1.0; replies.len()];
    for name in &names {
        let origin = |request: &Request| match rules.changes.contains(&name.as_str()) {
            true => None,
            false => request.message.arrays.get(name).map(|array| array.values.to_f64()),
        };
        let origins: Vec<Option<Vec<f64>>> = requests.iter().map(origin).collect();
        let per_row = rules.row_sums.contains(&name.as_str());
        let units = |reply: &Reply| {
            if per_row { rows.get(reply.client).map_or(1.0, |rows| (*rows).max(1) as f64) } else { 1.0 }
        };
        let of = |(from, reply): (&Option<Vec<f64>>, &Reply)| length(from, reply, name) / units(reply);
        let moved: Vec<f64> = origins.iter().zip(&*replies).map(of).collect();
        // Changes of length 0 do not count in the median.
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

/// The root mean square of an array's change.
fn length(from: &Option<Vec<f64>>, reply: &Reply, name: &str) -> f64 {
    let Some(array) = reply.message.arrays.get(name) else { return 0.0 };
    let values = array.values.to_f64();
    let squares: f64 = match from {
        Some(from) => values.iter().zip(from).map(|(to, from)| (to - from).powi(2)).sum(),
        None => values.iter().map(|value| value.powi(2)).sum(),
    };
    (squares / values.len().max(1) as f64).sqrt()
}

/// Replaces an array by from + scale·(array − from); without `from`, the array is multiplied by the scale.
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

/// Replaces the arrays of every reply by the statistic of each coordinate over all replies.
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

    fn rules(robust: Robust, changes: &'static [&'static str]) -> Rules {
        Rules { robust, changes, ..Rules::default() }
    }

    fn combined(
        robust: Robust,
        changes: &'static [&'static str],
        sent: &[f32],
        replies: &[&[f32]],
    ) -> (Vec<Vec<f64>>, Vec<Event>) {
        let (requests, mut replies) = round(sent, replies);
        let mut events = Vec::new();
        combine(&rules(robust, changes), &[], &requests, &mut replies, &mut Norms::default(), &mut events);
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
        // An array that already is a change is not compared with what was sent.
        let (replies, _) = combined(Robust::NormClip(1.0), &["particles"], &[10.0], &[&[9.0], &[1.0], &[2.0]]);
        assert_eq!(replies, [vec![2.0], vec![1.0], vec![2.0]]);
    }

    #[test]
    fn sums_over_rows_are_compared_by_their_length_for_a_row() {
        let sums = Rules { row_sums: &["particles"], ..rules(Robust::NormClip(1.0), &["particles"]) };
        let clipped = |of: &[&[f32]]| {
            let (requests, mut replies) = round(&[0.0], of);
            combine(&sums, &[1, 10, 100], &requests, &mut replies, &mut Norms::default(), &mut Vec::new());
            replies.iter().map(values).collect::<Vec<_>>().concat()
        };
        assert_eq!(clipped(&[&[2.0], &[20.0], &[200.0]]), [2.0, 20.0, 200.0]);
        assert_eq!(clipped(&[&[2.0], &[-900.0], &[100.0]]), [2.0, -20.0, 100.0]);
    }

    /// The first visits of a method whose clients reply with arrays that the server has not got yet.
    #[test]
    fn an_array_that_was_not_sent_is_clipped_too() {
        let (requests, mut replies) = round(&[0.0], &[&[1.0], &[2.0], &[3.0]]);
        for (reply, value) in replies.iter_mut().zip([4.0_f32, -500.0, 6.0]) {
            let score = Array { shape: vec![1], values: Values::F32(vec![value]) };
            reply.message = reply.message.clone().with_array("gradient", score);
        }
        let mut events = Vec::new();
        combine(
            &rules(Robust::NormClip(2.0), &["gradient"]),
            &[],
            &requests,
            &mut replies,
            &mut Norms::default(),
            &mut events,
        );
        let scores: Vec<f64> =
            replies.iter().flat_map(|reply| reply.message.arrays["gradient"].values.to_f64()).collect();
        assert_eq!(scores, [4.0, -12.0, 6.0]);
        assert_eq!(events.len(), 1);
    }

    #[test]
    fn changes_of_length_zero_do_not_count_in_the_median() {
        let of: [&[f32]; 7] = [&[0.0], &[1.0], &[0.0], &[2.0], &[0.0], &[0.0], &[9.0]];
        let (replies, _) = combined(Robust::NormClip(1.0), &[], &[0.0], &of);
        assert_eq!(replies.concat(), [0.0, 1.0, 0.0, 2.0, 0.0, 0.0, 2.0]);
    }

    #[test]
    fn a_single_reply_is_clipped_by_the_lengths_of_earlier_ones_once_there_are_three() {
        let (mut norms, mut events, mut got) = (Norms::default(), Vec::new(), Vec::new());
        for change in [1.0, 2.0, 3.0, 100.0, 100.0] {
            let (requests, mut replies) = round(&[0.0], &[&[change]]);
            combine(&rules(Robust::NormClip(1.0), &[]), &[], &requests, &mut replies, &mut norms, &mut events);
            got.push(values(&replies[0])[0]);
        }
        assert_eq!(got, [1.0, 2.0, 3.0, 2.0, 2.0], "clipped lengths are remembered, so the bound cannot be pulled up");
    }
}
