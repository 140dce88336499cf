//! Heat maps of numbers of rows: clients by classes, classes by predicted classes.

use std::cmp::Reverse;

use super::reliability::shorten;
use super::{Picture, WIDTH, round};
use crate::run::PartitionTable;
use crate::text::{self, compact, counted};

/// Room left of the cells for names of up to [`SHORT_NAME`] letters.
const LEFT: f64 = 62.0;
const SHORT_NAME: usize = 5;
const TOTALS: f64 = 62.0;
const TALLEST: f64 = 24.0;
/// Width of a letter of a class name, and the most letters that are shown.
const LETTER: f64 = 7.0;
const LONGEST_NAME: usize = 16;
/// Height that the cells of many rows share.
const ALL_CELLS: f64 = 900.0;
/// The most clients of a partition that are drawn, and the most cells: rows of 3 pixels, in a picture of some 2 MB.
const MOST_CLIENTS: usize = 300;
const MOST_CELLS: usize = 30_000;

/// The partition as an SVG file; `None` without clients or classes.
pub fn partition_svg(table: &PartitionTable) -> Option<String> {
    heatmap(table).map(|picture| picture.standalone())
}

pub(crate) fn heatmap(table: &PartitionTable) -> Option<Picture> {
    let classes = table.counts.iter().map(Vec::len).max().unwrap_or(0).max(table.class_names.len());
    let (clients, rows): (usize, usize) = (table.counts.len(), table.counts.iter().flatten().sum());
    let drawn = largest(&table.counts, MOST_CLIENTS.min(MOST_CELLS / classes.max(1)).max(1));
    let classes = if classes == 1 { "1 class".to_owned() } else { format!("{classes} classes") };
    let left_out = match drawn.len() {
        all if all == clients => String::new(),
        drawn => format!(" \u{b7} drawn: the {drawn} clients with the most rows"),
    };
    let names: Vec<String> = drawn.iter().map(|client| table.clients.of(*client)).collect();
    let counts: Vec<Vec<usize>> = drawn.into_iter().map(|client| table.counts[client].clone()).collect();
    Grid {
        title: "Rows by client and class".into(),
        facts: format!("{} \u{b7} {classes} \u{b7} {}{left_out}", counted(clients, "client"), text::rows(rows)),
        label: format!("Rows of {} in {classes}", counted(clients, "client")),
        columns: &table.class_names,
        rows: &names,
        counts: &counts,
        down: "Client",
        across: "",
        scale: Scale::Rows,
    }
    .draw()
}

/// The places of the `most` lines with the largest sums, ascending.
fn largest(counts: &[Vec<usize>], most: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..counts.len()).collect();
    places.sort_by_key(|place| Reverse(counts[*place].iter().sum::<usize>()));
    places.truncate(most);
    places.sort_unstable();
    places
}

/// What the colour of a cell means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// Its number of rows.
    Rows,
    /// Its share of the numbers beside it.
    ShareOfRow,
}

/// A heat map of counts.
pub(super) struct Grid<'a> {
    pub title: String,
    /// Its sizes, in a line.
    pub facts: String,
    /// Its content for those who do not see it.
    pub label: String,
    /// The names of columns and rows.
    pub columns: &'a [String],
    pub rows: &'a [String],
    /// `[rows][columns]`
    pub counts: &'a [Vec<usize>],
    /// What the rows are, and the columns; empty for none.
    pub down: &'a str,
    pub across: &'a str,
    pub scale: Scale,
}

/// Where the cells are.
struct Layout {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    /// Whether the names of the columns rise aslant, because they are wider than a cell.
    aslant: bool,
}

impl Grid<'_> {
    /// Draws the map; `None` without rows or columns.
    pub(super) fn draw(&self) -> Option<Picture> {
        let columns = self.counts.iter().map(Vec::len).max().filter(|count| *count > 0)?.max(self.columns.len());
        let at = self.layout(columns);
        let (right, bottom) = (at.left + at.width * columns as f64, at.top + at.height * self.counts.len() as f64);
        let mut picture = Picture::new(bottom + 58.0, &self.label);
        picture.text("fs-title", 20.0, 30.0, "start", &self.title);
        picture.text("fs-muted", 20.0, 51.0, "start", &self.facts);
        if !self.across.is_empty() {
            picture.text("fs-text", at.left, 74.0, "start", self.across);
        }
        self.column_names(&mut picture, &at);
        let slant = if at.aslant { 14.0 } else { 0.0 };
        picture.text("fs-tick", right + 8.0 + slant, at.top - 8.0, "start", "total");
        self.cells(&mut picture, &at, right);
        picture.text_upwards("fs-text", 18.0, 0.5 * (at.top + bottom), self.down);
        self.legend(&mut picture, bottom + 22.0);
        Some(picture)
    }

    fn layout(&self, columns: usize) -> Layout {
        let longest =
            |names: &[String]| names.iter().map(|name| name.chars().count()).max().unwrap_or(0).min(LONGEST_NAME);
        let left = LEFT + LETTER * longest(self.rows).saturating_sub(SHORT_NAME) as f64;
        let width = ((WIDTH - left - TOTALS - 8.0) / columns as f64).min(64.0);
        let name_length = longest(self.columns) as f64 * LETTER;
        let aslant = name_length > width;
        let across = if self.across.is_empty() { 0.0 } else { 20.0 };
        Layout {
            left,
            top: 78.0 + across + if aslant { 0.7 * name_length } else { 0.0 },
            width,
            height: (ALL_CELLS / self.counts.len() as f64).min(TALLEST),
            aslant,
        }
    }

    /// Names are left out where they would run into each other.
    fn column_names(&self, picture: &mut Picture, at: &Layout) {
        let every = (16.0 / at.width).ceil().max(1.0) as usize;
        for (column, name) in self.columns.iter().enumerate().step_by(every) {
            let (x, name) = (at.left + (column as f64 + 0.5) * at.width, shorten(name, LONGEST_NAME));
            if at.aslant {
                picture.text_aslant("fs-tick", x, at.top - 7.0, &name)
            } else {
                picture.text("fs-tick", x, at.top - 8.0, "middle", &name)
            }
        }
    }

    fn cells(&self, picture: &mut Picture, at: &Layout, right: f64) {
        let all = self.counts.iter().flatten().copied().max().unwrap_or(0).max(1);
        let every = (13.0 / at.height).ceil().max(1.0) as usize;
        for (row, counts) in self.counts.iter().enumerate() {
            let y = at.top + at.height * row as f64;
            let total: usize = counts.iter().sum();
            if row % every == 0 {
                let (name, middle) = (shorten(&self.rows[row], LONGEST_NAME), y + 0.5 * at.height + 4.0);
                picture.text("fs-tick", at.left - 8.0, middle, "end", &name);
                picture.text("fs-tick", right + 8.0, middle, "start", &compact(total));
            }
            let most = if self.scale == Scale::Rows { all } else { total.max(1) };
            for (column, &count) in counts.iter().enumerate() {
                cell(picture, (at.left + at.width * column as f64, y), (at.width, at.height), count, most);
            }
        }
    }

    fn legend(&self, picture: &mut Picture, y: f64) {
        let most = self.counts.iter().flatten().copied().max().unwrap_or(0).max(1);
        match self.scale {
            Scale::Rows => scale(picture, y, "1", &text::rows(most)),
            Scale::ShareOfRow => scale(picture, y, "0 %", "100 % of the class"),
        }
    }
}

fn cell(picture: &mut Picture, (x, y): (f64, f64), (width, height): (f64, f64), count: usize, most: usize) {
    let gap = if width.min(height) > 6.0 { 1.0 } else { 0.0 };
    if count == 0 {
        picture.rect("fs-zero", x, y, width - gap, height - gap);
        return;
    }
    let share = count as f64 / most as f64;
    picture.raw(&format!(
        r#"<rect x="{}" y="{}" width="{}" height="{}" fill="{}"/>"#,
        round(x),
        round(y),
        round(width - gap),
        round(height - gap),
        colour(share)
    ));
    let text = compact(count);
    if height >= 14.0 && width >= 7.0 * text.len() as f64 {
        let class = if share > 0.5 { "fs-on-dark" } else { "fs-on-light" };
        picture.text(class, x + 0.5 * (width - gap), y + 0.5 * height + 4.0, "middle", &text);
    }
}

/// From pale to deep blue; lightness falls all the way, so that the order survives in grey.
fn colour(share: f64) -> String {
    let stops = [(214.0, 230.0, 244.0), (74.0, 152.0, 201.0), (8.0, 48.0, 107.0)];
    let (from, to, t) =
        if share < 0.5 { (stops[0], stops[1], 2.0 * share) } else { (stops[1], stops[2], 2.0 * share - 1.0) };
    let mix = |a: f64, b: f64| (a + t * (b - a)).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

fn scale(picture: &mut Picture, y: f64, from: &str, to: &str) {
    const STEPS: usize = 40;
    const LENGTH: f64 = 200.0;
    for step in 0..STEPS {
        let share = (step as f64 + 0.5) / STEPS as f64;
        let x = round(LEFT + LENGTH * step as f64 / STEPS as f64);
        let width = round(LENGTH / STEPS as f64 + 0.3);
        picture.raw(&format!(r#"<rect x="{x}" y="{y}" width="{width}" height="10" fill="{}"/>"#, colour(share)));
    }
    picture.text("fs-tick", LEFT - 8.0, y + 9.0, "end", from);
    picture.text("fs-tick", LEFT + LENGTH + 8.0, y + 9.0, "start", to);
    let after = LEFT + LENGTH + (LETTER * to.chars().count() as f64 + 24.0).max(120.0);
    picture.rect("fs-zero", after, y, 18.0, 10.0);
    picture.text("fs-tick", after + 25.0, y + 9.0, "start", "none");
}
