//! Particles that do not go together are refused in words.

use std::panic::catch_unwind;

use super::*;
use crate::backend::{Flex, Precision};

fn session(precision: Precision) -> Session {
    Session::open::<Flex>(precision).unwrap()
}

fn layout(sizes: &[usize]) -> Arc<Layout> {
    Arc::new(Layout::new(["a", "b", "c"].iter().zip(sizes).map(|(name, size)| (*name, std::slice::from_ref(size)))))
}

/// N particles of blocks of these sizes, in memory as slices with f32 and as tensors with f64.
fn set(count: usize, sizes: &[usize], precision: Precision) -> Particles {
    let dim = sizes.iter().sum();
    let values = Values::F64((0..count * dim).map(|i| i as f64).collect());
    Particles::from_array(&Array { shape: vec![count, dim], values }, &layout(sizes), &session(precision)).unwrap()
}

#[test]
fn arrays_and_blocks_that_are_no_particles_of_the_layout_are_refused_in_words() {
    let (session, layout) = (session(Precision::F32), layout(&[2, 1]));
    let array = |shape: &[usize], count| Array { shape: shape.to_vec(), values: Values::F32(vec![0.0; count]) };
    let from_array = |shape: &[usize], count| Particles::from_array(&array(shape, count), &layout, &session);
    assert!(from_array(&[3, 3], 9).is_ok());
    for (shape, count, words) in [
        (&[3, 3][..], 4, "an array of the shape [3, 3] has 9 numbers, not 4"),
        (&[3, 3], 12, "has 9 numbers, not 12"),
        (&[3, 4], 12, "must be [N, 3] with N ≥ 1, not [3, 4]"),
        (&[0, 3], 0, "not [0, 3]"),
        (&[9], 9, "not [9]"),
    ] {
        let message = from_array(shape, count).unwrap_err().to_string();
        assert!(message.contains(words), "no {words:?} in {message}");
    }
    let none = Arc::new(Layout::default());
    assert_eq!(Particles::from_array(&array(&[1, 0], 0), &none, &session).unwrap_err(), ArrayError::NoBlocks);

    let block = |rows: usize, columns: usize| session.upload(vec![0.0; rows * columns], [rows, columns]);
    let made = Particles::new(vec![block(3, 2), block(3, 1)], &layout, &session).unwrap();
    assert_eq!(made.shape(), [3, 3]);
    let double = self::session(Precision::F64).upload(vec![0.0; 3], [3, 1]);
    for (blocks, words) in [
        (vec![block(3, 2)], "1 blocks of particles for a layout of 2"),
        (vec![block(3, 2), block(2, 1)], "block `b` of particles must be [3, 1], not [2, 1]"),
        (vec![block(3, 1), block(3, 1)], "block `a` of particles must be [3, 2], not [3, 1]"),
        (vec![block(3, 2), double], "block `b` of particles must be F32, not F64"),
    ] {
        let message = Particles::new(blocks, &layout, &session).unwrap_err().to_string();
        assert!(message.contains(words), "no {words:?} in {message}");
    }
}

/// Integers up to 3 in size, so that sums in f32 are exact in any order.
fn whole_numbers(rows: usize, columns: usize, seed: usize) -> Tensor<2> {
    let values = (0..rows * columns).map(|i| ((i * i + seed * i) % 7) as f32 - 3.0).collect();
    session(Precision::F32).upload(values, [rows, columns])
}

#[test]
fn a_product_in_parts_is_the_product_whatever_divides_the_columns() {
    // Few columns; a multiple of PART; one of 245; 2 · 1,009, which no width near PART divides; one more than a multiple.
    for columns in [1, 1000, 8 * PART, 32 * 245, 2018, 8 * PART + 1] {
        let (x, y) = (whole_numbers(5, columns, 1), whole_numbers(3, columns, 2));
        let (parts, whole) = (product_in_parts(x.clone(), y.clone()), product_of_rows(x, y));
        assert_eq!(read_matrix(parts).unwrap(), read_matrix(whole).unwrap(), "{columns} columns");
    }
}

#[test]
fn sets_that_do_not_go_together_are_refused_with_both_shapes_on_the_host_and_on_a_device() {
    let panic_of = |compute: &dyn Fn()| {
        let panic = catch_unwind(std::panic::AssertUnwindSafe(compute)).expect_err("no panic");
        panic.downcast_ref::<String>().cloned().or(panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap()
    };
    for precision in [Precision::F32, Precision::F64] {
        let set = |count, sizes: &[usize]| set(count, sizes, precision);
        let (three, two, other) = (set(3, &[2, 1]), set(2, &[2, 1]), set(3, &[1, 2]));
        let sum = |a: Tensor<2>, b: Tensor<2>| a + b;
        let cases: [(&dyn Fn(), &str); 20] = [
            (&|| drop(three.clone().zip(two.clone(), sum)), "particles [3, 3] and [2, 3]"),
            (
                &|| drop(three.clone().zip(other.clone(), sum)),
                "blocks of [2, 1] numbers do not go together with blocks of [1, 2]",
            ),
            (&|| drop(three.map(|block| block.narrow(1, 0, 1))), "block `a` of particles must be [3, 2], not [3, 1]"),
            (&|| drop(three.gram(&other)), "[2, 1] numbers do not go together with blocks of [1, 2]"),
            (&|| drop(three.gram_with_offsets(&two, &two)), "must be one particle, [1, 3], not [2, 3]"),
            (&|| drop(three.row_products(&two)), "particles [3, 3] and [2, 3]"),
            (&|| drop(three.row_products(&other)), "do not go together"),
            (&|| drop(three.squared_distances_from(&two)), "must be one particle, [1, 3], not [2, 3]"),
            (&|| drop(Particles::weighted_sum(&[], &[], None)), "no sets"),
            (&|| drop(Particles::weighted_sum(&[three.clone(), three.clone()], &[1.0], None)), "1 weights for 2 sets"),
            (
                &|| drop(Particles::weighted_sum(&[three.clone(), two.clone()], &[1.0; 2], None)),
                "set 1 is [2, 3], set 0 [3, 3]",
            ),
            (
                &|| drop(Particles::weighted_sum(&[two.clone(), three.clone()], &[1.0; 2], None)),
                "set 1 is [3, 3], set 0 [2, 3]",
            ),
            (
                &|| drop(Particles::weighted_sum(std::slice::from_ref(&three), &[1.0], Some(&[vec![0, 1, 3]]))),
                "3 numbers below 3, not [0, 1, 3]",
            ),
            (
                &|| drop(Particles::weighted_sum(std::slice::from_ref(&three), &[1.0], Some(&[vec![0, 1]]))),
                "3 numbers below 3, not [0, 1]",
            ),
            (&|| drop(Particles::mean_of(&[three.clone(), two.clone()])), "set 1 is [2, 3], set 0 [3, 3]"),
            (&|| drop(three.combine(&Array2::zeros((2, 5)))), "coefficients (2, 5) of particles [3, 3]"),
            (&|| drop(three.rows(&[0, 3])), "no row 3 in particles [3, 3]"),
            (&|| drop(three.rows(&[])), "no rows of particles [3, 3]"),
            (&|| drop(Particles::stack(&[])), "no sets of particles"),
            (&|| drop(Particles::stack(&[three.clone(), other.clone()])), "do not go together"),
        ];
        for (compute, words) in cases {
            let message = panic_of(compute);
            assert!(message.contains(words), "no {words:?} in {message}");
        }
        // One particle goes together with any number of them, and sets of any numbers are stacked.
        let one = three.mean();
        assert_eq!(three.clone().zip(one.clone(), sum).shape(), [3, 3]);
        assert_eq!(one.zip(three.clone(), sum).shape(), [3, 3]);
        assert_eq!(
            (Particles::stack(&[three.clone(), two.clone()]).shape(), three.gram(&two).unwrap().dim()),
            ([5, 3], (3, 2))
        );
    }
}
