//! Memory that is reused from one task to the next.

/// Numbers that are aligned to cache lines: a vector of 16 then never crosses two of them.
#[derive(Default)]
pub(super) struct Scratch {
    numbers: Vec<f32>,
}

/// Numbers in a cache line of 64 bytes.
const LINE: usize = 16;

impl Scratch {
    /// Slices of these lengths, with arbitrary values.
    pub fn take<const K: usize>(&mut self, lengths: [usize; K]) -> [&mut [f32]; K] {
        let total: usize = lengths.iter().map(|len| len.next_multiple_of(LINE)).sum();
        if self.numbers.len() < total + LINE {
            self.numbers.resize(total + LINE, 0.0);
        }
        let start = self.numbers.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
        let mut rest = &mut self.numbers[start..];
        lengths.map(|len| {
            let (own, after) = std::mem::take(&mut rest).split_at_mut(len.next_multiple_of(LINE));
            rest = after;
            &mut own[..len]
        })
    }
}
