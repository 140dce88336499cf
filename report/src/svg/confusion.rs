//! The confusion matrix as a heat map: the classes of the rows by the predicted ones.

use super::Picture;
use super::heatmap::{Grid, Scale};
use crate::text::thousands;

/// Draws the matrix of classes with these names; cells have the colour of their share of the row.
pub(crate) fn confusion(counts: &[Vec<usize>], names: &[String]) -> Option<Picture> {
    let rows: usize = counts.iter().flatten().sum();
    let right: usize = counts.iter().enumerate().map(|(class, row)| row[class]).sum();
    Grid {
        title: "Class of the rows by predicted class".into(),
        facts: format!("{} rows \u{b7} {} on the diagonal, predicted right", thousands(rows), thousands(right)),
        label: format!("Confusion matrix of {} classes", counts.len()),
        columns: names,
        rows: names,
        counts,
        down: "Class",
        across: "Predicted class",
        scale: Scale::ShareOfRow,
    }
    .draw()
}
