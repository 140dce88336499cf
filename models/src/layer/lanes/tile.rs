//! The two sums that the passes of a convolution consist of, in tiles that stay in registers.
//!
//! 16 rows of data lie in the lanes of one vector, so that no sum crosses lanes and no pixel is copied to where a matrix
//! product would want it. Four outputs times up to six pixels (or weights) are summed at once: 24 sums, enough to
//! keep two multiply-add units busy, of the 32 registers that AVX-512 and NEON have. Vectors come from `pulp`, which
//! is safe; a processor without 16-lane registers takes the same sums in parts.

use pulp::Simd;

use super::plan::LANES;

/// Outputs in a tile.
pub(super) const OUTPUTS: usize = 4;

/// Calls a tile function on parts of `0..len` that are as equal in size as they can be.
macro_rules! in_tiles {
    ($simd:ty, $len:expr, |$from:ident| $tile:ident($($argument:expr),*)) => {{
        let len: usize = $len;
        let most = if <$simd>::REGISTER_COUNT >= 32 { 6 } else { 2 };
        let mut $from = 0;
        for left in (1..=len.div_ceil(most)).rev() {
            let size = (len - $from).div_ceil(left);
            match size {
                6 => $tile::<$simd, 6>($($argument),*),
                5 => $tile::<$simd, 5>($($argument),*),
                4 => $tile::<$simd, 4>($($argument),*),
                3 => $tile::<$simd, 3>($($argument),*),
                2 => $tile::<$simd, 2>($($argument),*),
                _ => $tile::<$simd, 1>($($argument),*),
            }
            $from += size;
        }
    }};
}

/// out[o, to[k] + shift] += Σ_t weights[t, o] · image[at[k] + taps[t]], for up to four o and all k.
pub(super) struct Correlation<'a, S: Simd> {
    pub image: &'a [S::f32s],
    pub at: &'a [usize],
    pub taps: &'a [usize],
    /// `[taps, OUTPUTS]`
    pub weights: &'a [f32],
    /// How many of the four outputs exist.
    pub outputs: usize,
    pub to: &'a [usize],
    pub shift: usize,
    /// Pixels from one output to the next.
    pub plane: usize,
}

impl<S: Simd> Correlation<'_, S> {
    #[inline(always)]
    pub fn run(&self, simd: S, out: &mut [S::f32s]) {
        in_tiles!(S, self.at.len(), |from| correlate(simd, self, from, out));
    }
}

#[inline(always)]
fn correlate<S: Simd, const X: usize>(simd: S, job: &Correlation<'_, S>, from: usize, out: &mut [S::f32s]) {
    let parts = LANES / S::F32_LANES;
    let (mut at, mut to) = ([0; X], [0; X]);
    at.copy_from_slice(&job.at[from..from + X]);
    to.copy_from_slice(&job.to[from..from + X]);
    for part in 0..parts {
        let mut sums = [[simd.splat_f32s(0.0); X]; OUTPUTS];
        for o in 0..OUTPUTS {
            if o < job.outputs {
                for k in 0..X {
                    sums[o][k] = out[(o * job.plane + to[k] + job.shift) * parts + part];
                }
            }
        }
        for (&tap, weights) in job.taps.iter().zip(job.weights.as_chunks::<OUTPUTS>().0) {
            let mut pixels = [simd.splat_f32s(0.0); X];
            for k in 0..X {
                pixels[k] = job.image[(at[k] + tap) * parts + part];
            }
            for o in 0..OUTPUTS {
                let weight = simd.splat_f32s(weights[o]);
                for k in 0..X {
                    sums[o][k] = simd.mul_add_e_f32s(weight, pixels[k], sums[o][k]);
                }
            }
        }
        for o in 0..OUTPUTS {
            if o < job.outputs {
                for k in 0..X {
                    out[(o * job.plane + to[k] + job.shift) * parts + part] = sums[o][k];
                }
            }
        }
    }
}

/// sums[o, t] += Σ_k map[o, k] · image[at[k] + taps[t]], lane by lane, for four o and all t.
pub(super) struct Contraction<'a, S: Simd> {
    pub image: &'a [S::f32s],
    pub at: &'a [usize],
    pub taps: &'a [usize],
    /// For each output, as many vectors as `at` has pixels; an output that does not exist repeats the last one.
    pub maps: [&'a [S::f32s]; OUTPUTS],
}

impl<S: Simd> Contraction<'_, S> {
    #[inline(always)]
    pub fn run(&self, simd: S, sums: &mut [S::f32s]) {
        in_tiles!(S, self.taps.len(), |from| contract(simd, self, from, sums));
    }
}

#[inline(always)]
fn contract<S: Simd, const T: usize>(simd: S, job: &Contraction<'_, S>, from: usize, out: &mut [S::f32s]) {
    let (parts, count) = (LANES / S::F32_LANES, job.taps.len());
    let mut taps = [0; T];
    taps.copy_from_slice(&job.taps[from..from + T]);
    let maps = job.maps.map(|map| &map[..job.at.len() * parts]);
    for part in 0..parts {
        let mut sums = [[simd.splat_f32s(0.0); T]; OUTPUTS];
        for o in 0..OUTPUTS {
            for t in 0..T {
                sums[o][t] = out[(o * count + from + t) * parts + part];
            }
        }
        for (k, &at) in job.at.iter().enumerate() {
            let mut pixels = [simd.splat_f32s(0.0); T];
            for t in 0..T {
                pixels[t] = job.image[(at + taps[t]) * parts + part];
            }
            for o in 0..OUTPUTS {
                let value = maps[o][k * parts + part];
                for t in 0..T {
                    sums[o][t] = simd.mul_add_e_f32s(value, pixels[t], sums[o][t]);
                }
            }
        }
        for o in 0..OUTPUTS {
            for t in 0..T {
                out[(o * count + from + t) * parts + part] = sums[o][t];
            }
        }
    }
}
