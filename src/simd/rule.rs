//! The optimisers' step rules for SIMD vectors of coordinates; see `stein::Optimizer` for their sources.

use pulp::Simd;

/// An optimiser's step with its constants.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StepRule {
    /// A rule without accumulators.
    Gradient(GradientStep),
    /// A rule with an accumulator of φ².
    Adaptive(AdaptiveStep),
    /// A rule with accumulators of φ and of φ².
    Adam(AdamStep),
}

/// θ ← θ + ε φ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GradientStep {
    /// ε.
    pub lr: f32,
}

/// v ← keep·v + add·φ², θ ← θ + ε φ/(ϵ + √v): AdaGrad with momentum or with a plain sum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdaptiveStep {
    /// ε.
    pub lr: f32,
    /// ϵ.
    pub epsilon: f32,
    /// Whether the quotient is φ/√(v + ϵ).
    pub inside: bool,
    /// The factor of v.
    pub keep: f32,
    /// The factor of φ².
    pub add: f32,
}

impl AdaptiveStep {
    /// The step with these constants of an optimiser.
    pub fn new(lr: f64, epsilon: f64, inside: bool, keep: f64, add: f64) -> Self {
        Self { lr: lr as f32, epsilon: epsilon as f32, inside, keep: keep as f32, add: add as f32 }
    }
}

/// m ← β₁ m + (1−β₁) φ, v ← β₂ v + (1−β₂) φ², θ ← θ + ε·m/(√(scale·v) + ϵ), with m's bias correction in ε.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdamStep {
    /// ε over m's bias correction.
    pub lr: f32,
    /// ϵ.
    pub epsilon: f32,
    /// β and 1 − β of m and of v: in 32 bits the difference would lose its digits where β is near 1.
    pub shares: [[f32; 2]; 2],
    /// One over v's bias correction.
    pub scale: f32,
}

/// A step rule.
pub(crate) trait Step: Copy {
    /// The new θ, m and v from φ, θ, m and v.
    fn step<S: Simd>(self, simd: S, phi: S::f32s, theta: S::f32s, m: S::f32s, v: S::f32s) -> [S::f32s; 3];
}

impl Step for GradientStep {
    #[inline(always)]
    fn step<S: Simd>(self, simd: S, phi: S::f32s, theta: S::f32s, m: S::f32s, v: S::f32s) -> [S::f32s; 3] {
        [simd.mul_add_f32s(simd.splat_f32s(self.lr), phi, theta), m, v]
    }
}

impl Step for AdaptiveStep {
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

impl Step for AdamStep {
    #[inline(always)]
    fn step<S: Simd>(self, simd: S, phi: S::f32s, theta: S::f32s, m: S::f32s, v: S::f32s) -> [S::f32s; 3] {
        let m = average(simd, self.shares[0], m, phi);
        let v = average(simd, self.shares[1], v, simd.mul_f32s(phi, phi));
        let root = simd.sqrt_f32s(simd.mul_f32s(simd.splat_f32s(self.scale), v));
        let step = simd.div_f32s(m, simd.add_f32s(root, simd.splat_f32s(self.epsilon)));
        [simd.mul_add_f32s(simd.splat_f32s(self.lr), step, theta), m, v]
    }
}

/// β·old + (1−β)·new. This is an `inline(always)` function and not a closure: a vector operation that is not inlined
/// into a function with the target feature becomes a call.
#[inline(always)]
fn average<S: Simd>(simd: S, [keep, add]: [f32; 2], old: S::f32s, new: S::f32s) -> S::f32s {
    let share = simd.mul_f32s(simd.splat_f32s(add), new);
    simd.mul_add_f32s(simd.splat_f32s(keep), old, share)
}
