//! What the server checks before an algorithm sees a reply: the right round and client, the right arrays, finite.

use super::message::{Ask, Question, Reply, Request};
use crate::error::RunError;

/// Refuses a reply that does not answer its request: another round or client, arrays that are missing or of another
/// shape than those that were sent, numbers that are missing or not finite.
pub fn validate(request: &Request, reply: Reply) -> Result<Reply, RunError> {
    let refuse = |reason: String| Err(RunError::Client { round: request.round, client: request.client, reason });
    if (reply.round, reply.client) != (request.round, request.client) {
        return refuse(format!("the reply is of round {}, client {}", reply.round, reply.client));
    }
    let discrepancy = matches!(request.ask, Ask::Answer(Question::Discrepancy { .. }));
    if discrepancy && !reply.message.scalars.contains_key(DISCREPANCY) {
        return refuse(format!("the reply lacks the number \"{DISCREPANCY}\""));
    }
    // A discrepancy or a score comes without parameters; everything else brings back what it was sent.
    let echoes = !discrepancy && request.ask != Ask::Score;
    for (name, sent) in request.message.arrays.iter().filter(|_| echoes) {
        let Some(got) = reply.message.arrays.get(name) else {
            return refuse(format!("the reply lacks the array \"{name}\""));
        };
        if got.shape != sent.shape || got.values.len() != sent.values.len() {
            return refuse(format!("array \"{name}\" of the reply is {:?}, not {:?}", got.shape, sent.shape));
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
    Ok(reply)
}

/// The name under which a client's squared Stein discrepancy travels.
pub const DISCREPANCY: &str = "discrepancy";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::federation::message::{Array, Message, Values};

    fn message(values: Vec<f32>) -> Message {
        Message::default().with_array("particles", Array { shape: vec![1, values.len()], values: Values::F32(values) })
    }

    fn request() -> Request {
        Request { round: 2, client: 3, ask: Ask::Train, message: message(vec![1.0, 2.0]) }
    }

    fn reply(values: Vec<f32>) -> Reply {
        Reply { round: 2, client: 3, message: message(values) }
    }

    #[test]
    fn a_good_reply_passes() {
        assert!(validate(&request(), reply(vec![3.0, 4.0])).is_ok());
    }

    #[test]
    fn bad_replies_are_refused_with_the_reason() {
        let stale = Reply { round: 1, ..reply(vec![3.0, 4.0]) };
        let foreign = Reply { client: 0, ..reply(vec![3.0, 4.0]) };
        let empty = Reply { message: Message::default(), ..reply(vec![]) };
        for (bad, word) in [
            (stale, "round 1"),
            (foreign, "client 0"),
            (empty, "lacks"),
            (reply(vec![3.0]), "[1, 1]"),
            (reply(vec![3.0, f32::NAN]), "not finite at element 1"),
        ] {
            let error = validate(&request(), bad).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
