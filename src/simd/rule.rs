//! The optimisers' rules for a vector of coordinates; `stein::Optimizer` has their sources.

use pulp::Simd;

/// An optimiser's step with its constants.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    /// Without accumulators.
    Gradient(Gradient),
    /// With the second moment.
    Adaptive(Adaptive),
    /// With both moments.
    Adam(Adam),
}

/// θ ← θ + ε φ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gradient {
    /// ε.
    pub lr: f32,
}

/// v ← keep·v + add·φ², θ ← θ + ε φ/(ϵ + √v): AdaGrad with momentum or with a plain sum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Adaptive {
    /// ε.
    pub lr: f32,
    /// ϵ.
    pub epsilon: f32,
    /// φ/√(v + ϵ) instead.
    pub inside: bool,
    /// What is kept of v.
    pub keep: f32,
    /// What φ² is multiplied by.
    pub add: f32,
}

impl Adaptive {
    /// From an optimiser's constants.
    pub fn new(lr: f64, epsilon: f64, inside: bool, keep: f64, add: f64) -> Self {
        Self { lr: lr as f32, epsilon: epsilon as f32, inside, keep: keep as f32, add: add as f32 }
    }
}

/// m ← β₁ m + (1−β₁) φ, v ← β₂ v + (1−β₂) φ², θ ← θ + ε·m/(√(scale·v) + ϵ), with m's bias correction in ε.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Adam {
    /// ε over m's bias correction.
    pub lr: f32,
    /// ϵ.
    pub epsilon: f32,
    /// β₁, β₂.
    pub beta: [f32; 2],
    /// One over v's bias correction.
    pub scale: f32,
}

/// One step of a rule.
pub(crate) trait Move: Copy {
    /// φ, θ, m, v in; θ, m, v out.
    fn step<S: Simd>(self, simd: S, phi: S::f32s, theta: S::f32s, m: S::f32s, v: S::f32s) -> [S::f32s; 3];
}

impl Move for Gradient {
    #[inline(always)]
    fn step<S: Simd>(self, simd: S, phi: S::f32s, theta: S::f32s, m: S::f32s, v: S::f32s) -> [S::f32s; 3] {
        [simd.mul_add_f32s(simd.splat_f32s(self.lr), phi, theta), m, v]
    }
}

impl Move for Adaptive {
    #[inline(always)]
    fn step<S: Simd>(self, simd: S, phi: S::f32s, theta: S::f32s, m: S::f32s, v: S::f32s) -> [S::f32s; 3] {
        let square = simd.mul_f32s(simd.splat_f32s(self.add), simd.mul_f32s(phi, phi));
        let v = simd.mul_add_f32s(simd.splat_f32s(self.keep), v, square);
        let epsilon = simd.splat_f32s(self.epsilon);
        let root = match self.inside {
            true => simd.sqrt_f32s(simd.add_f32s(v, epsilon)),
            false => simd.add_f32s(simd.sqrt_f32s(v), epsilon),
        };
        [simd.mul_add_f32s(simd.splat_f32s(self.lr), simd.div_f32s(phi, root), theta), m, v]
    }
}

impl Move for Adam {
    #[inline(always)]
    fn step<S: Simd>(self, simd: S, phi: S::f32s, theta: S::f32s, m: S::f32s, v: S::f32s) -> [S::f32s; 3] {
        let m = average(simd, self.beta[0], m, phi);
        let v = average(simd, self.beta[1], v, simd.mul_f32s(phi, phi));
        let root = simd.sqrt_f32s(simd.mul_f32s(simd.splat_f32s(self.scale), v));
        let step = simd.div_f32s(m, simd.add_f32s(root, simd.splat_f32s(self.epsilon)));
        [simd.mul_add_f32s(simd.splat_f32s(self.lr), step, theta), m, v]
    }
}

/// β·old + (1−β)·new. A function that is inlined for certain, unlike a closure: outside a function with vectors on, vector
/// operations are calls.
#[inline(always)]
fn average<S: Simd>(simd: S, beta: f32, old: S::f32s, new: S::f32s) -> S::f32s {
    let share = simd.mul_f32s(simd.splat_f32s(1.0 - beta), new);
    simd.mul_add_f32s(simd.splat_f32s(beta), old, share)
}
