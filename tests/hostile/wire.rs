//! Frames between a server and a site, damaged: each must be read to its end or refused with a reason, within memory in
//! proportion to what arrived.

use fedstein::array::{Array, Values};
use fedstein::protocol::{Ask, Message, Request, SharedMessage, Wire};
use fedstein::remote::{Arrays, Content, Limits, Parcel, ReplyHead, RequestHead, open, seal};

use super::*;

/// The largest size of the arrays of a message that is read.
const MOST: u64 = 1 << 20;

/// A request and a reply as they are sent, in every precision.
fn frames() -> Vec<Vec<u8>> {
    let array = |shape: Vec<usize>, values| Array { shape, values };
    let message = Message::default()
        .with_array("particles", array(vec![2, 3], Values::F32(vec![0.5, -1.0, 2.25, 1e-3, 7.0, -0.0])))
        .with_array("sums", array(vec![2], Values::F64(vec![1.0 / 3.0, 1e9])))
        .with_scalar("rows", 12.0);
    let framed = |content: Content, request: &Request| {
        let mut frame = Vec::new();
        let parcel = seal(7, 3, content, &Arrays::of(&request.message, request.wire)).unwrap();
        parcel.write(&mut frame).unwrap();
        frame
    };
    let both = |wire: Wire| {
        let request = Request::new(4, 1, Ask::Train, SharedMessage::sent(message.clone(), wire));
        let reply = request.reply(message.clone());
        let [asks, replies] =
            [Content::Request(RequestHead::of(&request, 0, true)), Content::Reply(ReplyHead::of(&reply))];
        [framed(asks, &request), framed(replies, &request)]
    };
    [Wire::Full, Wire::F32, Wire::F16, Wire::Bf16].into_iter().flat_map(both).collect()
}

/// Reads a frame as server and site do; the reason why it is refused.
fn read(mut frame: &[u8]) -> Result<(), String> {
    while let Some(parcel) = Parcel::read(&mut frame, Limits::of(MOST)).map_err(|error| error.to_string())? {
        let opened = open(parcel)?;
        match opened.content.clone() {
            Content::Request(head) => {
                let message = opened.message(head.numbers.clone())?;
                head.request(opened.run, message)?;
            }
            Content::Reply(head) => drop(opened.message(head.numbers)?),
            _ => {}
        }
    }
    Ok(())
}

/// Damaged frames; how many were read and how many refused.
fn damage_frames(budget: Budget) -> (usize, usize) {
    let frames = frames();
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let (mut good, mut refused) = (0, 0);
    for frame in &frames {
        assert_eq!(read(frame), Ok(()));
    }
    while budget.allows(good + refused) {
        for frame in &frames {
            let bytes = mutated(frame, &mut rng);
            let (result, most) = peak(|| read(&bytes));
            let bound = 8 * bytes.len() + ROOM;
            assert!(most <= bound, "{most} bytes were held at once for a frame of {}", bytes.len());
            match result {
                Ok(()) => good += 1,
                Err(reason) => {
                    refused += 1;
                    assert_plain(&reason);
                    assert!(!reason.chars().any(char::is_control), "{reason:?}");
                }
            }
        }
    }
    (good, refused)
}

#[test]
fn damaged_frames_are_read_or_refused() {
    let (read, refused) = damage_frames(Budget::Cases(8_000));
    assert!(read > 20 && refused > 2_000, "{read} read, {refused} refused");
}

#[test]
#[ignore = "runs for FEDSTEIN_FUZZ_SECONDS"]
fn damaged_frames_for_as_long_as_told() {
    println!("frames, (read, refused): {:?}", damage_frames(Budget::of_environment()));
}
