//! The cost of sending particles to a site and of keeping a visit on its disk: 20 particles of a network 784-100-10,
//! 6.4 MB.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use fedstein::array::{Array, Values};
use fedstein::checkpoint::State;
use fedstein::protocol::{Ask, Message, Request, SharedMessage, Wire};
use fedstein::remote::{Arrays, Content, Limits, Parcel, RequestHead, open, seal};
use fedstein::site::Disk;

fn particles() -> Array {
    let (count, dim) = (20, 79_510);
    let values = (0..count * dim).map(|at| (at as f32 * 0.37).sin()).collect();
    Array { shape: vec![count, dim], values: Values::F32(values) }
}

fn request(wire: Wire) -> Request {
    let message = SharedMessage::sent(Message::default().with_array("particles", particles()), wire);
    Request { counted: 1, ..Request::new(2, 0, Ask::Train, message) }
}

/// A frame as the server writes it.
fn sent(request: &Request) -> Vec<u8> {
    let arrays = Arrays::of(&request.message, request.wire);
    let parcel = seal(7, 1, Content::Request(RequestHead::of(request, 0, true)), &arrays).expect("it can be sealed");
    let mut frame = Vec::new();
    parcel.write(&mut frame).expect("a vector takes everything");
    frame
}

/// What the site makes of it: with the fingerprint compared.
fn received(frame: &[u8]) -> Request {
    let parcel = Parcel::read(&mut &frame[..], Limits::of(1 << 30)).expect("it can be read").expect("a frame");
    let opened = open(parcel).expect("it can be opened");
    let Content::Request(head) = opened.content.clone() else { panic!("not a request") };
    let message = opened.message(head.numbers.clone()).expect("arrays");
    head.request(opened.run, message).expect("the same fingerprint")
}

fn messages(criterion: &mut Criterion) {
    for wire in [Wire::Full, Wire::F16] {
        let request = request(wire);
        let frame = sent(&request);
        criterion.bench_function(&format!("encode, {}", wire.word()), |bench| bench.iter(|| sent(black_box(&request))));
        criterion.bench_function(&format!("check and decode, {}", wire.word()), |bench| {
            bench.iter(|| received(black_box(&frame)))
        });
    }
}

fn visits(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a directory");
    let mut disk = Disk::open(dir.path(), 7).expect("a directory of the run");
    let request = request(Wire::Full);
    let half = State::default().with_array("particles", particles());
    criterion.bench_function("commit a visit: state and reply", |bench| {
        bench.iter(|| {
            disk.commit(&request, 0, half.clone(), &request.message).expect("it can be written");
        });
    });
    let again = Request { round: 2, ..request.clone() };
    criterion.bench_function("read a reply again", |bench| bench.iter(|| disk.reply(black_box(&again))));
}

criterion_group!(wire, messages, visits);
criterion_main!(wire);
