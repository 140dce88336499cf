//! Seeded mutations of good files, for the tests of hostile input.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;

/// Texts that replace a number.
const NUMBERS: &[&[u8]] = &[
    b"0",
    b"-1",
    b"1",
    b"2",
    b"1000000",
    b"2147483648",
    b"18446744073709551615",
    b"-9223372036854775808",
    b"1e308",
    b"1e-320",
    b"-0.0",
    b"0.5",
    b"null",
    b"[]",
    b"{}",
    b"\"\"",
    b"true",
];

/// One to four changes: a bit, a byte, a number, something inserted, something taken out or doubled, the end cut off.
pub fn mutated(good: &[u8], rng: &mut ChaCha8Rng) -> Vec<u8> {
    const PIECES: &[&[u8]] = &[
        b"\n",
        b"\r",
        b",",
        b"\"",
        b" ",
        b"-",
        b".",
        b":",
        b"#",
        b"nan",
        b"inf",
        b"1e999",
        b"-1e-999",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"99999999999999999999999",
        b"9223372036854775808",
        b"0x1",
        b"\x1b[2J",
        b"\x1f\x8b",
        b"\xff\xff\xff\xff",
    ];
    let mut bytes = good.to_vec();
    for _ in 0..rng.random_range(1..=4) {
        let at = rng.random_range(0..=bytes.len());
        let until = rng.random_range(at..=bytes.len().min(at + 9));
        match rng.random_range(0..9) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.random_range(0..8),
            1 if at < bytes.len() => bytes[at] = rng.random(),
            2 => drop(bytes.splice(at..at, PIECES[rng.random_range(0..PIECES.len())].iter().copied())),
            3 => drop(bytes.splice(at..until, PIECES[rng.random_range(0..PIECES.len())].iter().copied())),
            4 => drop(bytes.drain(at..until)),
            5 => {
                let piece = bytes[at..until].repeat(rng.random_range(1..5));
                drop(bytes.splice(at..at, piece));
            }
            6 | 7 => {
                let part = |b: &u8| b.is_ascii_digit() || b".-+eE".contains(b);
                let start = bytes[at..].iter().position(u8::is_ascii_digit).map_or(at, |ahead| at + ahead);
                let length = bytes[start..].iter().take_while(|b| part(b)).count();
                drop(bytes.splice(start..start + length, NUMBERS[rng.random_range(0..NUMBERS.len())].iter().copied()));
            }
            _ => bytes.truncate(at),
        }
    }
    bytes
}
