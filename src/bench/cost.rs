//! Floating-point operations and bytes of each workload, by the formulas of the yardsticks' roofline columns.
//!
//! A multiplication and an addition are two operations. Only products count that no implementation of the mathematics
//! avoids: those of the network, of the particles with each other ("Gram"), of coefficients with particles; 8 operations
//! a coordinate for the update. The symmetry of a Gram matrix is not credited. Bytes are passes over the particles'
//! coordinates (f32) at the speed of memory, pessimistic where everything fits a cache.

/// Bytes of a coordinate.
const WIDTH: f64 = 4.0;
/// Operations of the update, a coordinate.
const UPDATE: f64 = 8.0;

/// The work of one unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes read or written.
    pub bytes: f64,
}

impl Cost {
    /// The work of both.
    pub fn plus(self, other: Self) -> Self {
        Self { flops: self.flops + other.flops, bytes: self.bytes + other.bytes }
    }
}

/// A network of one hidden layer, and N of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Networks {
    /// Features of a row.
    pub inputs: usize,
    /// Hidden units.
    pub hidden: usize,
    /// Classes.
    pub outputs: usize,
    /// N.
    pub particles: usize,
}

impl Networks {
    /// N networks 784-100-10.
    pub fn mnist(particles: usize) -> Self {
        Self { inputs: 784, hidden: 100, outputs: 10, particles }
    }

    fn first(self) -> f64 {
        (self.inputs * self.hidden) as f64
    }

    fn second(self) -> f64 {
        (self.hidden * self.outputs) as f64
    }

    /// d: weights and biases.
    pub fn dim(self) -> usize {
        (self.inputs + 1) * self.hidden + (self.hidden + 1) * self.outputs
    }

    /// N·d.
    fn coordinates(self) -> f64 {
        self.particles as f64 * self.dim() as f64
    }

    /// N²·d.
    fn pairs(self) -> f64 {
        self.particles as f64 * self.coordinates()
    }

    /// The likelihood's score on `rows` rows: forward and backward, but no gradient of the inputs.
    pub fn score(self, rows: usize) -> f64 {
        (4.0 * self.first() + 6.0 * self.second()) * (rows * self.particles) as f64
    }

    /// W1. Score; Gram, K·S and K·Θ; update.
    pub fn svgd_step(self, rows: usize) -> Cost {
        let flops = self.score(rows) + 6.0 * self.pairs() + UPDATE * self.coordinates();
        Cost { flops, bytes: 8.0 * self.coordinates() * WIDTH }
    }

    /// W2. L steps with two density estimates (q and t_k), L' without rows but with three (q_new, q, t_k): each adds a
    /// Gram and a product. 23 passes a pair of steps.
    pub fn dsvgd_round(self, rows: usize, local: usize, distil: usize) -> Cost {
        let update = UPDATE * self.coordinates();
        let flops = local as f64 * (self.score(rows) + 14.0 * self.pairs() + update)
            + distil as f64 * (16.0 * self.pairs() + update);
        Cost { flops, bytes: 23.0 * 0.5 * (local + distil) as f64 * self.coordinates() * WIDTH }
    }

    /// W4a. Scores of all rows of K clients, each written once.
    pub fn scores(self, clients: usize, rows: usize) -> Cost {
        let images = (clients * rows * self.inputs) as f64 * WIDTH;
        let flops = clients as f64 * self.score(rows);
        Cost { flops, bytes: clients as f64 * self.coordinates() * WIDTH + images }
    }

    /// W4. Those scores; two Grams a client; every score read twice more.
    pub fn selection(self, clients: usize, rows: usize) -> Cost {
        let flops = clients as f64 * 4.0 * self.pairs();
        self.scores(clients, rows).plus(Cost { flops, bytes: clients as f64 * 2.0 * self.coordinates() * WIDTH })
    }

    /// W5a. L steps of each client with one density estimate.
    pub fn fedwba_clients(self, clients: usize, steps: usize, rows: usize) -> Cost {
        let visits = (clients * steps) as f64;
        let flops = visits * (self.score(rows) + 10.0 * self.pairs() + UPDATE * self.coordinates());
        Cost { flops, bytes: visits * 10.0 * self.coordinates() * WIDTH }
    }

    /// W5b. K·N × N costs in every iteration, an average between two.
    pub fn barycenter(self, clients: usize, iterations: usize) -> Cost {
        let (clients, passes) = (clients as f64, (2 * iterations).saturating_sub(1) as f64);
        let flops = passes * 2.0 * clients * self.pairs();
        Cost { flops, bytes: (passes + 2.0) * clients * self.coordinates() * WIDTH }
    }

    /// W6. Forward passes on `rows` rows.
    pub fn prediction(self, rows: usize) -> Cost {
        let flops = 2.0 * (self.first() + self.second()) * (rows * self.particles) as f64;
        Cost { flops, bytes: (rows * self.inputs) as f64 * WIDTH + self.coordinates() * WIDTH }
    }
}

/// W3. Steps of N logistic regressions with p weights and a log precision; bytes are those of the rows.
pub fn logistic(particles: usize, rows: usize, weights: usize, steps: usize) -> Cost {
    let [n, b, p, steps] = [particles, rows, weights, steps].map(|count| count as f64);
    let d = p + 1.0;
    let flops = steps * (4.0 * b * p * n + 6.0 * n * n * d + 20.0 * n * n + UPDATE * n * d);
    Cost { flops, bytes: steps * b * p * WIDTH }
}

/// W7. An SVGD step of N LeNets on 3×32×32, B images: kernels 16 of 3×5×5 at 28×28 places and 32 of 16×5×5 at 10×10,
/// dense layers 800-120-84-10. The first layer has no gradient of its inputs. 0.26 MB of maps an image and particle.
pub fn lenet(particles: usize, rows: usize) -> Cost {
    let first = 2.0 * 75.0 * 16.0 * 784.0;
    let second = 2.0 * 400.0 * 32.0 * 100.0;
    let dense = 2.0 * (96_000.0 + 10_080.0 + 840.0);
    let (images, n) = ((particles * rows) as f64, particles as f64);
    let flops = images * (2.0 * first + 3.0 * second + 3.0 * dense) + 6.0 * n * n * 121_182.0;
    Cost { flops, bytes: 0.26e6 * images }
}
