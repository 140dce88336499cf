//! The tree of binary decisions over the classes: a fork divides its classes by 2-means of their mean
//! embeddings, until every leaf is one class. Source: Achituve et al. 2021; their code runs k-means from fifty random
//! starts, this one from each class and the one farthest from it, and needs no random numbers.

use ndarray::{Array1, Array2};

/// The limit on Lloyd's iterations. They converge by themselves, except for ties that rounding breaks differently each
/// time.
const MOST_ITERATIONS: usize = 100;

/// An inner node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fork {
    /// The classes on the side y = 1, ascending.
    pub left: Vec<usize>,
    /// The classes on the side y = −1, ascending.
    pub right: Vec<usize>,
}

/// The forks of the tree over `classes`, the root first; none for a single class.
///
/// # Arguments
/// - `classes`: distinct, ascending
/// - `rows`: embeddings `[n, E]`
/// - `labels`: the class of each row, `[n]`; every one of `classes` occurs
pub fn class_tree(classes: &[usize], rows: &Array2<f64>, labels: &[usize]) -> Vec<Fork> {
    let means: Vec<Array1<f64>> = classes.iter().map(|class| class_mean(*class, rows, labels)).collect();
    let mut forks = Vec::new();
    let mut open = vec![(0..classes.len()).collect::<Vec<usize>>()];
    while let Some(members) = open.pop() {
        if members.len() < 2 {
            continue;
        }
        let (left, right) = two_means(&members, &means);
        let named = |side: &[usize]| side.iter().map(|member| classes[*member]).collect();
        forks.push(Fork { left: named(&left), right: named(&right) });
        open.extend([right, left]);
    }
    forks
}

fn class_mean(class: usize, rows: &Array2<f64>, labels: &[usize]) -> Array1<f64> {
    let mut sum = Array1::zeros(rows.ncols());
    let own = rows.rows().into_iter().zip(labels).filter(|(_, label)| **label == class);
    let count = own.map(|(row, _)| sum += &row).count();
    sum / count.max(1) as f64
}

/// The 2-means with the lowest cost over all starts; the first of equal ones. The side with the first member is the
/// left one.
fn two_means(members: &[usize], means: &[Array1<f64>]) -> (Vec<usize>, Vec<usize>) {
    let mut best: Option<(f64, Vec<bool>)> = None;
    for first in members {
        let Some(farthest) = farthest(*first, members, means) else { continue };
        let (cost, sides) = lloyd(members, means, [means[*first].clone(), means[farthest].clone()]);
        let parted = sides.contains(&true) && sides.contains(&false);
        if parted && best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, sides));
        }
    }
    // Classes with equal means cannot be separated: they are divided in their order.
    let sides = match best {
        Some((_, sides)) => sides,
        None => (0..members.len()).map(|place| place >= members.len().div_ceil(2)).collect(),
    };
    let (right, left): (Vec<_>, Vec<_>) = members.iter().zip(&sides).partition(|(_, side)| **side != sides[0]);
    let plain = |side: Vec<(&usize, &bool)>| side.into_iter().map(|(member, _)| *member).collect();
    (plain(left), plain(right))
}

/// The member farthest from this one; `None` where all coincide with it.
fn farthest(from: usize, members: &[usize], means: &[Array1<f64>]) -> Option<usize> {
    let mut farthest = (0.0, None);
    for member in members {
        let distance = squared_distance(&means[from], &means[*member]);
        if distance > farthest.0 {
            farthest = (distance, Some(*member));
        }
    }
    farthest.1
}

/// Lloyd's iteration from two centres: the sum of squares, and whether each member is nearer to the second one.
fn lloyd(members: &[usize], means: &[Array1<f64>], mut centres: [Array1<f64>; 2]) -> (f64, Vec<bool>) {
    let mut sides = Vec::new();
    for _ in 0..MOST_ITERATIONS {
        let nearer = |member: &usize| {
            squared_distance(&means[*member], &centres[1]) < squared_distance(&means[*member], &centres[0])
        };
        let now: Vec<bool> = members.iter().map(nearer).collect();
        if now == sides {
            break;
        }
        sides = now;
        for (side, centre) in [false, true].into_iter().zip(&mut centres) {
            let own = || members.iter().zip(&sides).filter(|(_, of)| **of == side).map(|(member, _)| &means[*member]);
            // An empty side keeps its centre.
            let Some(first) = own().next() else { continue };
            let sum = own().skip(1).fold(first.clone(), |sum, mean| sum + mean);
            *centre = sum / own().count() as f64;
        }
    }
    let cost = |(member, side): (&usize, &bool)| squared_distance(&means[*member], &centres[usize::from(*side)]);
    (members.iter().zip(&sides).map(cost).sum(), sides)
}

fn squared_distance(a: &Array1<f64>, b: &Array1<f64>) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}
