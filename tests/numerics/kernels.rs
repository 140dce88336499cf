//! Kernels and bandwidth rules that the golden cases lack: directions, bandwidths and discrepancies of four particles in
//! the plane, against numbers of an independent program.

use crate::common::{Tolerance, assert_close, particles, values};
use fedstein::backend::{Flex, Precision, Session};
use fedstein::stein::{Bandwidth, Gradient, Kernel, MedianOfEven, Rule, Score, SteinForm, direction};
use ndarray::{Array2, array};

/// Sums of a dozen terms of order 1 in f64.
const CLOSE: Tolerance = Tolerance { rtol: 1e-11, atol: 1e-12 };

fn session() -> Session {
    Session::open::<Flex>(Precision::F64).unwrap()
}

fn four() -> Array2<f64> {
    array![[0.0, 0.0], [1.0, 0.5], [-0.5, 2.0], [3.0, -1.0]]
}

fn scores() -> Array2<f64> {
    array![[1.0, -0.5], [0.25, 2.0], [-1.5, 0.5], [0.75, 1.0]]
}

fn by(rule: Rule) -> Bandwidth {
    Bandwidth { rule, median: MedianOfEven::Mean }
}

#[test]
fn the_directions_of_all_kernels_are_those_of_numpy() {
    // numpy: (1/N) Σ_j [k(x_j, x_i) s_j + ∇_{x_j} k(x_j, x_i)] from the kernels' definitions, with the gradient by complex
    // steps. Of the Laplacian kernel and of the last one h is the median of all 16 r, and of all 16 r², over ln 5.
    let gradient = Gradient::Correct;
    let cases: [(Kernel, [f64; 8]); 4] = [
        (
            Kernel::Mixture(by(Rule::Fixed(1.5))),
            [
                0.1269339447547286,
                0.04911670520182798,
                0.21873630881971523,
                0.5316804797604087,
                -0.35728047381479744,
                0.26230786481173124,
                0.2494285315107165,
                0.27959035903141327,
            ],
        ),
        (
            Kernel::Laplacian(by(Rule::Reference)),
            [
                0.13689163147292305,
                0.06476393128612186,
                0.19923957107471607,
                0.5347304806347365,
                -0.34656562779380545,
                0.272735802482876,
                0.2504563248094713,
                0.2898549806264236,
            ],
        ),
        (
            Kernel::Sigmoid { slope: 0.5, offset: 0.2, gradient },
            [
                0.024671915028113,
                0.148031490168678,
                0.4166092372176684,
                0.7484665990031814,
                -0.587616832704216,
                0.5768548696836854,
                1.131943428864057,
                0.3934492374395287,
            ],
        ),
        (
            Kernel::Imq { bandwidth: by(Rule::Reference), exponent: -0.7 },
            [
                0.08488515786372282,
                0.3317630599787881,
                0.21689062354011535,
                0.5980963765906515,
                -0.23408938911889984,
                0.46542850532729374,
                0.29079176069994284,
                0.4073316753706666,
            ],
        ),
    ];
    let at = particles(&four(), &session());
    for (kernel, want) in cases {
        let score = Score::dense(particles(&scores(), &session()));
        let got = direction(&kernel, &at, score).unwrap().evaluate(&at);
        assert_close(&values(&got), &want, CLOSE, &format!("{kernel:?}"));
    }
}

#[test]
fn the_bandwidth_of_the_laplacian_kernel_is_of_distances_and_not_of_their_squares() {
    // numpy: the median of all 16 r, or of the 6 of pairs, over ln 5 or ln 4; the lower one of the middle two.
    let lower = Bandwidth { rule: Rule::Reference, median: MedianOfEven::Lower };
    let at = particles(&four(), &session());
    for (bandwidth, want) in [
        (by(Rule::Reference), 1.299482609441681),
        (by(Rule::Paper), 1.666788985503194),
        (by(Rule::FullMatrix), 1.5086525898400904),
        (by(Rule::Pyro), 1.4356938866223166),
        (lower, 1.2809147820377582),
        (by(Rule::Fixed(0.7)), 0.7),
    ] {
        let got = Kernel::Laplacian(bandwidth).evaluate(&at).unwrap().bandwidth.unwrap();
        assert_close(&[got], &[want], CLOSE, &format!("{bandwidth:?}"));
    }
    // Five at 0 and one at 3: the median is 0, and the mean of the positive r is 3.
    let nearly_all_equal = particles(&array![[0.0], [0.0], [0.0], [0.0], [0.0], [3.0]], &session());
    let got = Kernel::Laplacian(by(Rule::Reference)).evaluate(&nearly_all_equal).unwrap().bandwidth.unwrap();
    assert_close(&[got], &[3.0 / 7f64.ln()], CLOSE, "a median of zero");
}

#[test]
fn the_discrepancy_of_a_mixture_of_kernels_and_the_parts_of_one_are_those_of_numpy() {
    let (at, s) = (particles(&four(), &session()), particles(&scores(), &session()));
    let form = |kernel: Kernel| SteinForm::new(&kernel, &at).unwrap().unwrap();
    // numpy: the mean over h/4, h and 4h of (1/N²) Σ_ij [k s·s + s·∇k + ∇k·s + tr ∇∇k], from the derivatives of
    // exp(−r²/h); differences of the mixture itself give 1.750514776.
    let mixture = form(Kernel::Mixture(by(Rule::Fixed(1.5))));
    assert_close(&[mixture.product(&s, &s).unwrap().v], &[1.7505147764696751], CLOSE, "KSD");
    // The trace at r = 0 is 2d/h: (1/N)·(2·2/1.5)·(4 + 1 + ¼)/3, and without the mixture (1/N)·(2·2/1.5).
    assert_close(&[mixture.constant()], &[7.0 / 6.0], CLOSE, "constant of the mixture");
    let rbf = form(Kernel::Rbf(by(Rule::Fixed(1.5))));
    assert_close(&[rbf.constant()], &[2.0 / 3.0], CLOSE, "constant");
    // numpy: (Σ_ij exp(−r²/1.5) − 4)/16.
    assert_close(&[rbf.off_diagonal_mass()], &[0.06999736747394819], CLOSE, "mass off the diagonal");
}
