//! Reproduction of the papers' figures: reads a definition (TOML, embedded), carries out its runs, and writes curves,
//! pictures and a table that compares the paper's numbers with ours.
//!
//! [`figure`] reads a definition, [`grid`] expands it into runs, [`runner`] carries them out and keeps each result in a
//! file of its own, [`curve`] and [`judge`] evaluate the kept results, [`output`] writes the files, and [`kept_csv`]
//! reads the CSV file again.

pub mod curve;
pub mod data;
pub mod density;
pub mod figure;
pub mod grid;
pub mod held;
pub mod judge;
pub mod kept;
pub mod kept_csv;
pub mod numbers;
pub mod output;
pub mod progress;
pub mod runner;
pub mod verdict;

pub use figure::{Figure, FigureError, Scale};
pub use grid::{Grid, Wanted};

macro_rules! embedded {
    ($($id:literal),+ $(,)?) => {
        &[$(($id, include_str!(concat!("../../configs/paper/", $id, ".toml")))),+]
    };
}

/// The name and the definition of every figure.
pub const FIGURES: &[(&str, &str)] = embedded![
    "dsvgd/fig2",
    "dsvgd/fig3",
    "dsvgd/fig4",
    "dsvgd/fig5",
    "dsvgd/fig6",
    "dsvgd/fig7",
    "dsvgd/fig8",
    "dsvgd/fig9",
    "dsvgd/fig10",
    "dsvgd/fig11",
    "dsvgd/fig12",
    "dsvgd/fig13",
    "dsvgd/fig14",
    "dsvgd/fig15",
    "dsvgd/fig16",
    "dsvgd/fig17",
    "dsvgd/fig18",
    "dsvgd/fig19",
    "dsvgd/fig20",
    "selection/fig2",
    "selection/fig3",
    "selection/fig4",
    "selection/fig5",
    "fedwba/fig3",
    "fedwba/table1",
    "fedwba/table2",
    "fedwba/table4",
    "fedwba/table5",
    "fedwba/table6",
    "fedwba/table7",
    "beyond/memory",
    "beyond/choices",
    "beyond/federations",
];

/// The text of a figure's definition.
fn text(id: &str) -> Option<&'static str> {
    FIGURES.iter().find(|(name, _)| *name == id).map(|(_, text)| *text)
}

/// Finds a figure by its name, such as `dsvgd/fig4`.
///
/// # Errors
/// There is no figure of this name, or its definition is inconsistent.
pub fn find(id: &str) -> Result<Figure, FigureError> {
    match text(id) {
        Some(own) => Figure::parse(id, own, &text),
        None => Err(FigureError::Unknown(id.to_owned())),
    }
}

#[cfg(test)]
mod tests;
