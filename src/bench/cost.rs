//! Floating-point operations and bytes of each workload, by the formulas behind the yardsticks' roofline columns.
//!
//! A multiplication and an addition are two operations. Only products count that no implementation of the mathematics
//! avoids: those of the network, of the particles with each other ("Gram"), of coefficients with particles; the update
//! counts 8 operations per coordinate. The symmetry of a Gram matrix is not exploited in the count. Bytes are passes
//! over the particles' coordinates (f32) at the speed of memory, which is pessimistic where all data fit a cache. K·S
//! counts as a product with all coordinates, as in the yardsticks; where `simd`'s loop mixes the outputs' gradients of a first
//! layer instead, fedstein has less to do, and the fraction of the roofline may exceed 100 %.

/// The number of bytes of a coordinate.
const WIDTH: f64 = 4.0;
/// The number of operations of the update per coordinate.
const UPDATE: f64 = 8.0;

/// The operations and bytes of one unit of work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes read or written.
    pub bytes: f64,
}

impl Cost {
    /// The sum of the work of both.
    pub fn plus(self, other: Self) -> Self {
        Self { flops: self.flops + other.flops, bytes: self.bytes + other.bytes }
    }
}

/// The sizes of N networks with one hidden layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Networks {
    /// Features of a row.
    pub inputs: usize,
    /// Hidden units.
    pub hidden: usize,
    /// Classes.
    pub outputs: usize,
    /// The number of particles N.
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

    /// The dimension d: weights and biases.
    pub fn dim(self) -> usize {
        (self.inputs + 1) * self.hidden + (self.hidden + 1) * self.outputs
    }

    /// The number of coordinates N·d.
    fn coordinates(self) -> f64 {
        self.particles as f64 * self.dim() as f64
    }

    /// The number of multiplications of an N×N matrix with the coordinates, or of a Gram matrix: N²·d.
    fn pairs(self) -> f64 {
        self.particles as f64 * self.coordinates()
    }

    /// The operations of the likelihood's score on `rows` rows: forward and backward, but no gradient of the inputs.
    pub fn score(self, rows: usize) -> f64 {
        (4.0 * self.first() + 6.0 * self.second()) * (rows * self.particles) as f64
    }

    /// The cost of W1: score; Gram, K·S and K·Θ; update.
    pub fn svgd_step(self, rows: usize) -> Cost {
        let flops = self.score(rows) + 6.0 * self.pairs() + UPDATE * self.coordinates();
        Cost { flops, bytes: 8.0 * self.coordinates() * WIDTH }
    }

    /// The cost of W2: L steps with two density estimates (q and t_k), L' without rows but with three (q_new, q, t_k).
    /// Each estimate adds a Gram matrix and a product. A pair of steps takes 23 passes.
    pub fn dsvgd_round(self, rows: usize, local: usize, distil: usize) -> Cost {
        let update = UPDATE * self.coordinates();
        let flops = local as f64 * (self.score(rows) + 14.0 * self.pairs() + update)
            + distil as f64 * (16.0 * self.pairs() + update);
        Cost { flops, bytes: 23.0 * 0.5 * (local + distil) as f64 * self.coordinates() * WIDTH }
    }

    /// The cost of W8a: an SVGD step, the products of the second layer with its second moments, and two more passes for
    /// the score and the start of the other clients' sites.
    pub fn newton_step(self, rows: usize) -> Cost {
        let moments = 2.0 * self.second() / self.hidden as f64 * self.moments() * self.particles as f64;
        let sites = Cost { flops: moments + 3.0 * self.coordinates(), bytes: 2.0 * self.coordinates() * WIDTH };
        self.svgd_step(rows).plus(sites)
    }

    /// The number of second moments of the hidden units and the 1 of the bias.
    fn moments(self) -> f64 {
        ((self.hidden + 1) * (self.hidden + 1)) as f64
    }

    /// The cost of W8d: a forward pass, a backward pass to the outputs of each layer, and the second moments of the
    /// hidden units. Images and coordinates are read once.
    pub fn curvature(self, rows: usize) -> Cost {
        let products = 2.0 * self.first() + 4.0 * self.second() + 2.0 * self.moments();
        Cost { flops: products * (rows * self.particles) as f64, ..self.scores(1, rows) }
    }

    /// The cost of W8: L steps on `batch` rows with the other clients' sites, and the gradient and the curvature of all
    /// rows.
    pub fn newton_visit(self, batch: usize, rows: usize, steps: usize) -> Cost {
        let Cost { flops, bytes } = self.newton_step(batch);
        let steps = Cost { flops: steps as f64 * flops, bytes: steps as f64 * bytes };
        steps.plus(self.scores(1, rows)).plus(self.curvature(rows))
    }

    /// The cost of W4a: scores of all rows of K clients, each written once.
    pub fn scores(self, clients: usize, rows: usize) -> Cost {
        let images = (clients * rows * self.inputs) as f64 * WIDTH;
        let flops = clients as f64 * self.score(rows);
        Cost { flops, bytes: clients as f64 * self.coordinates() * WIDTH + images }
    }

    /// The cost of W4: the scores of W4a; two Gram matrices per client; every score read twice more.
    pub fn selection(self, clients: usize, rows: usize) -> Cost {
        let flops = clients as f64 * 4.0 * self.pairs();
        self.scores(clients, rows).plus(Cost { flops, bytes: clients as f64 * 2.0 * self.coordinates() * WIDTH })
    }

    /// The cost of W5a: L steps of each client with one density estimate.
    pub fn fedwba_clients(self, clients: usize, steps: usize, rows: usize) -> Cost {
        let visits = (clients * steps) as f64;
        let flops = visits * (self.score(rows) + 10.0 * self.pairs() + UPDATE * self.coordinates());
        Cost { flops, bytes: visits * 10.0 * self.coordinates() * WIDTH }
    }

    /// The cost of W5b: K·N × N costs in every iteration, and an average between two iterations.
    pub fn barycenter(self, clients: usize, iterations: usize) -> Cost {
        let (clients, passes) = (clients as f64, (2 * iterations).saturating_sub(1) as f64);
        let flops = passes * 2.0 * clients * self.pairs();
        Cost { flops, bytes: (passes + 2.0) * clients * self.coordinates() * WIDTH }
    }

    /// The cost of W6: forward passes on `rows` rows.
    pub fn prediction(self, rows: usize) -> Cost {
        let flops = 2.0 * (self.first() + self.second()) * (rows * self.particles) as f64;
        Cost { flops, bytes: (rows * self.inputs) as f64 * WIDTH + self.coordinates() * WIDTH }
    }
}

/// The cost of W3: steps of N logistic regressions with p weights and a log precision; the bytes are those of the rows.
pub fn logistic(particles: usize, rows: usize, weights: usize, steps: usize) -> Cost {
    let [n, b, p, steps] = [particles, rows, weights, steps].map(|count| count as f64);
    let d = p + 1.0;
    let flops = steps * (4.0 * b * p * n + 6.0 * n * n * d + 20.0 * n * n + UPDATE * n * d);
    Cost { flops, bytes: steps * b * p * WIDTH }
}

/// The cost of W7: an SVGD step of N LeNets on 3×32×32, B images: kernels 16 of 3×5×5 at 28×28 places and 32 of 16×5×5
/// at 10×10, dense layers 800-120-84-10. The first layer has no gradient of its inputs. The feature maps take 0.26 MB
/// per image and particle.
pub fn lenet(particles: usize, rows: usize) -> Cost {
    let first = 2.0 * 75.0 * 16.0 * 784.0;
    let second = 2.0 * 400.0 * 32.0 * 100.0;
    let dense = 2.0 * (96_000.0 + 10_080.0 + 840.0);
    let (images, n) = ((particles * rows) as f64, particles as f64);
    let flops = images * (2.0 * first + 3.0 * second + 3.0 * dense) + 6.0 * n * n * 121_182.0;
    Cost { flops, bytes: 0.26e6 * images }
}
