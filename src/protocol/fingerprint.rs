//! A 64-bit fingerprint of a sequence of words, which differs wherever a single word differs.
//!
//! Four lanes of x ← (x ⋘ 23 ⊕ word)·odd, side by side so that multiplications overlap, and the finaliser of SplitMix64
//! (Steele, Lea & Flood 2014) over them. Each lane is a bijection of its words in turn: two messages of one shape that
//! differ in a single word never have the same lanes at the end. The fingerprint detects accidents; it is not secure
//! against forgery.

/// Odd multipliers: the fractional part of the golden ratio, and those of SplitMix64 and xxHash64.
const ODD: [u64; 4] = [0x9E37_79B9_7F4A_7C15, 0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB, 0xC2B2_AE3D_27D4_EB4F];

/// The lanes of a fingerprint that is being computed.
#[derive(Debug)]
pub(super) struct Fingerprint {
    lanes: [u64; 4],
}

impl Default for Fingerprint {
    fn default() -> Self {
        Self { lanes: ODD }
    }
}

impl Fingerprint {
    /// Adds one word.
    pub fn word(&mut self, word: u64) {
        self.words([word, 0, 0, 0]);
    }

    /// Adds a text with its length.
    pub fn text(&mut self, text: &str) {
        self.word(text.len() as u64);
        text.bytes().for_each(|byte| self.word(u64::from(byte)));
    }

    /// Adds 32-bit floats.
    pub fn singles(&mut self, values: &[f32]) {
        self.word(32);
        self.word(values.len() as u64);
        let pair = |two: &[f32]| u64::from(two[0].to_bits()) | u64::from(two[1].to_bits()) << 32;
        let mut chunks = values.chunks_exact(8);
        for eight in &mut chunks {
            self.words([pair(&eight[0..2]), pair(&eight[2..4]), pair(&eight[4..6]), pair(&eight[6..8])]);
        }
        chunks.remainder().iter().for_each(|value| self.word(u64::from(value.to_bits())));
    }

    /// Adds 64-bit floats.
    pub fn doubles(&mut self, values: &[f64]) {
        self.word(64);
        self.word(values.len() as u64);
        let mut chunks = values.chunks_exact(4);
        for four in &mut chunks {
            self.words([four[0].to_bits(), four[1].to_bits(), four[2].to_bits(), four[3].to_bits()]);
        }
        chunks.remainder().iter().for_each(|value| self.word(value.to_bits()));
    }

    /// The fingerprint.
    pub fn finish(&self) -> u64 {
        let mut hash = 0_u64;
        for lane in self.lanes {
            hash = (hash ^ lane).wrapping_add(ODD[0]);
            hash = (hash ^ (hash >> 30)).wrapping_mul(ODD[1]);
            hash = (hash ^ (hash >> 27)).wrapping_mul(ODD[2]);
            hash ^= hash >> 31;
        }
        hash
    }

    fn words(&mut self, words: [u64; 4]) {
        for ((lane, word), odd) in self.lanes.iter_mut().zip(words).zip(ODD) {
            *lane = (lane.rotate_left(23) ^ word).wrapping_mul(odd);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::message::Message;
    use crate::array::{Array, Values};

    fn message(name: &str, shape: &[usize], values: Values) -> Message {
        Message::default().with_array(name, Array { shape: shape.to_vec(), values })
    }

    #[test]
    fn messages_that_differ_in_one_thing_have_different_fingerprints() {
        let values: Vec<f32> = (0..22).map(|i| i as f32 * 0.5).collect();
        let first = message("particles", &[2, 11], Values::F32(values.clone()));
        let mut prints = BTreeSet::from([first.fingerprint()]);
        for at in 0..values.len() {
            let mut other = values.clone();
            other[at] = other[at].next_up();
            prints.insert(message("particles", &[2, 11], Values::F32(other)).fingerprint());
        }
        let double = Values::F64(values.iter().map(|value| f64::from(*value)).collect());
        prints.insert(message("particles", &[2, 11], double).fingerprint());
        prints.insert(message("particles", &[11, 2], Values::F32(values.clone())).fingerprint());
        prints.insert(message("particle", &[2, 11], Values::F32(values.clone())).fingerprint());
        prints.insert(first.clone().with_scalar("seen", 1.0).fingerprint());
        prints.insert(first.clone().with_scalar("seen", 2.0).fingerprint());
        assert_eq!(prints.len(), 1 + 22 + 5);
        assert!(prints.contains(&message("particles", &[2, 11], Values::F32(values)).fingerprint()));
    }
}
