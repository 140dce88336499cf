//! Checks of a reply before an algorithm sees it: the reply answers this request, and its arrays have the right shapes
//! and types and finite values.

use crate::array::Values;
use crate::error::RunError;
use crate::protocol::{Ask, DISCREPANCY, PARTICLES, Question, ROWS, Reply, Request};

/// Checks that a reply answers this request.
///
/// # Errors
/// The reply belongs to another run, round or client, or answers another state of the server. The error is a sentence.
pub fn answers(request: &Request, reply: &Reply) -> Result<(), String> {
    if (reply.round, reply.client) != (request.round, request.client) {
        return Err(format!("the reply is of round {}, client {}", reply.round, reply.client));
    }
    if reply.run != request.run {
        return Err(format!("the reply is of run {:016x}, and this is run {:016x}", reply.run, request.run));
    }
    if reply.state != request.state {
        return Err("the reply is to another message of this round, as where an earlier one is answered late".into());
    }
    Ok(())
}

/// Refuses a reply of another run, round, client or state, with arrays that are missing or have another shape or type
/// than those that were sent, with numbers that are missing or not finite, or with a negative number of rows.
///
/// # Errors
/// [`RunError::Client`] with the first reason.
pub fn validate(request: &Request, reply: Reply) -> Result<Reply, RunError> {
    let refuse = |reason: String| Err(RunError::Client { round: request.round, client: request.client, reason });
    if let Err(reason) = answers(request, &reply) {
        return refuse(reason);
    }
    let discrepancy = matches!(request.ask, Ask::Answer(Question::Discrepancy { .. }));
    if discrepancy && !reply.message.scalars.contains_key(DISCREPANCY) {
        return refuse(format!("the reply lacks the number \"{DISCREPANCY}\""));
    }
    // Replies with a discrepancy or with scores of a client have no parameters; a likelihood's score has the shape of the
    // particles; a training reply has all arrays of the request.
    let echoes = |name: &str| match request.ask {
        Ask::Train => true,
        Ask::Answer(Question::LikelihoodScore { .. }) => name == PARTICLES,
        Ask::Answer(Question::Discrepancy { .. }) | Ask::Score(_) | Ask::Calibrate(_) => false,
    };
    for (name, sent) in request.message.arrays.iter().filter(|(name, _)| echoes(name)) {
        let Some(got) = reply.message.arrays.get(name) else {
            return refuse(format!("the reply lacks the array \"{name}\""));
        };
        if got.shape != sent.shape || got.values.len() != sent.values.len() {
            return refuse(format!("array \"{name}\" of the reply is {:?}, not {:?}", got.shape, sent.shape));
        }
        let word = |values: &Values| if matches!(values, Values::F32(_)) { "f32" } else { "f64" };
        if word(&got.values) != word(&sent.values) {
            let (got, sent) = (word(&got.values), word(&sent.values));
            return refuse(format!("array \"{name}\" of the reply holds {got}, not {sent}"));
        }
    }
    for (name, array) in &reply.message.arrays {
        if let Some(at) = array.values.first_non_finite() {
            return refuse(format!("array \"{name}\" of the reply is not finite at element {at}"));
        }
    }
    if let Some((name, value)) = reply.message.scalars.iter().find(|(_, value)| !value.is_finite()) {
        return refuse(format!("the number \"{name}\" of the reply is {value}"));
    }
    if let Some(rows) = reply.message.scalars.get(ROWS).filter(|rows| **rows < 0.0) {
        return refuse(format!("the reply claims {rows} rows"));
    }
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::{Array, Values};
    use crate::protocol::Message;

    fn message(values: Vec<f32>) -> Message {
        Message::default().with_array("particles", Array { shape: vec![1, values.len()], values: Values::F32(values) })
    }

    fn request() -> Request {
        Request { run: 9, ..Request::new(2, 3, Ask::Train, message(vec![1.0, 2.0])) }
    }

    fn reply(values: Vec<f32>) -> Reply {
        request().reply(message(values))
    }

    #[test]
    fn a_good_reply_passes() {
        assert!(validate(&request(), reply(vec![3.0, 4.0])).is_ok());
    }

    #[test]
    fn bad_replies_are_refused_with_the_reason() {
        let stale = Reply { round: 1, ..reply(vec![3.0, 4.0]) };
        let foreign = Reply { client: 0, ..reply(vec![3.0, 4.0]) };
        let run = Reply { run: 8, ..reply(vec![3.0, 4.0]) };
        let state = Reply { state: 1, ..reply(vec![3.0, 4.0]) };
        let mut double = reply(vec![3.0, 4.0]);
        double.message = Message::default()
            .with_array("particles", Array { shape: vec![1, 2], values: Values::F64(vec![3.0, 4.0]) });
        let mut rows = reply(vec![3.0, 4.0]);
        rows.message = rows.message.with_scalar(ROWS, -5.0);
        let empty = Reply { message: Message::default(), ..reply(vec![]) };
        for (bad, word) in [
            (stale, "round 1"),
            (foreign, "client 0"),
            (run, "run 0000000000000008"),
            (state, "another message of this round"),
            (double, "holds f64, not f32"),
            (rows, "-5 rows"),
            (empty, "lacks"),
            (reply(vec![3.0]), "[1, 1]"),
            (reply(vec![3.0, f32::NAN]), "not finite at element 1"),
        ] {
            let error = validate(&request(), bad).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
