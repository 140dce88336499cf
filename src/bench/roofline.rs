//! The machine's limit: the fastest matrix product and the fastest copy, measured through the same backend in the same
//! run. The roofline of a workload is the time that its operations take at the one rate plus its bytes at the other.

use std::time::{Duration, Instant};

use burn::tensor::{Tensor, TensorData};
use rayon::prelude::*;

use super::cost::Cost;
use super::size::Size;
use super::timing::Bench;
use crate::error::RunError;

/// The bytes that a copy reads, and as many that it writes: more than any cache holds.
const COPIED: usize = 256 << 20;
/// The number of buffers of a copy on a GPU, because drivers limit the size of a single one.
const BUFFERS: usize = 4;
/// The time for each shape and for the copy.
const BUDGET: Duration = Duration::from_millis(400);

/// m, k, n of the products: a large square, and those of the network 784-100-10 with 20 particles: forward and backward
/// on 100 rows, forward on 1000.
const SHAPES: [[usize; 3]; 4] = [[2048, 2048, 2048], [2000, 784, 100], [2000, 100, 784], [2000, 784, 1000]];
const TINY_SHAPES: [[usize; 3]; 1] = [[64, 64, 64]];

/// The machine's two limiting rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceilings {
    /// The rate of the fastest matrix product, 10⁹ operations per second.
    pub gflops: f64,
    /// The rate of the fastest copy, read and written, 10⁹ bytes per second.
    pub gbs: f64,
}

impl Ceilings {
    /// Measures both rates, in about two seconds.
    ///
    /// # Errors
    /// The device fails.
    pub fn measure(bench: &Bench) -> Result<Self, RunError> {
        let (shapes, copied) = match bench.settings.size {
            Size::Full => (&SHAPES[..], COPIED),
            Size::Tiny => (&TINY_SHAPES[..], 1 << 20),
        };
        let mut gflops: f64 = 0.0;
        for [m, k, n] in shapes {
            let (a, b) = (ones(bench, [*m, *k]), ones(bench, [*k, *n]));
            let seconds = best(bench, || drop(a.clone().matmul(b.clone())))?;
            gflops = gflops.max(2e-9 * (m * k * n) as f64 / seconds);
        }
        let seconds = if bench.session.backend().has_parallel_clients() {
            copy_on_host(bench, copied)?
        } else {
            copy_on_device(bench, copied)?
        };
        Ok(Self { gflops, gbs: 2e-9 * copied as f64 / seconds })
    }

    /// The milliseconds that the work takes at both rates, one after the other.
    pub fn milliseconds(&self, cost: Cost) -> f64 {
        1e-6 * (cost.flops / self.gflops + cost.bytes / self.gbs)
    }
}

/// The rate of a copy between plain slices, one piece per thread.
fn copy_on_host(bench: &Bench, bytes: usize) -> Result<f64, RunError> {
    let (from, mut to) = (vec![1.0f32; bytes / 4], vec![0.0f32; bytes / 4]);
    let piece = from.len().div_ceil(rayon::current_num_threads());
    best(bench, || {
        let pieces = to.par_chunks_mut(piece).zip(from.par_chunks(piece));
        pieces.for_each(|(to, from)| to.copy_from_slice(from));
        std::hint::black_box(&mut to);
    })
}

/// The rate of an elementwise operation that reads and writes every element.
fn copy_on_device(bench: &Bench, bytes: usize) -> Result<f64, RunError> {
    let buffers: Vec<Tensor<2>> = (0..BUFFERS).map(|_| ones(bench, [bytes / 4 / BUFFERS / 64, 64])).collect();
    best(bench, || buffers.iter().for_each(|buffer| drop(buffer.clone().add_scalar(1.0))))
}

fn ones(bench: &Bench, shape: [usize; 2]) -> Tensor<2> {
    let data = TensorData::new(vec![1.0f32; shape[0] * shape[1]], shape);
    Tensor::from_data(data, (bench.session.device(), bench.session.dtype()))
}

/// The least seconds of several repetitions, without the first two.
fn best(bench: &Bench, mut go: impl FnMut()) -> Result<f64, RunError> {
    let mut least = f64::INFINITY;
    let (mut goes, begun) = (0, Instant::now());
    while goes < 5 || begun.elapsed() < BUDGET {
        let start = Instant::now();
        go();
        bench.session.device().sync().map_err(|error| RunError::Device(format!("{error:?}")))?;
        if goes >= 2 {
            least = least.min(start.elapsed().as_secs_f64());
        }
        goes += 1;
    }
    Ok(least)
}
