//! The partition of the data: a heat map of clients by classes.

use super::reliability::shorten;
use super::{Picture, WIDTH, round};
use crate::run::PartitionTable;
use crate::text::{compact, escape, thousands};

/// The least room for the clients at the left.
const LEFT: f64 = 62.0;
const TOTALS: f64 = 62.0;
const TALLEST: f64 = 24.0;
/// Width of a letter of a class name, and the most letters that are shown.
const LETTER: f64 = 7.0;
const LONGEST_NAME: usize = 16;
/// Height that the cells of many clients share.
const ALL_CELLS: f64 = 900.0;

/// The partition as an SVG file; `None` without clients or classes.
pub fn partition_svg(table: &PartitionTable) -> Option<String> {
    heatmap(table).map(|picture| picture.standalone())
}

pub(crate) fn heatmap(table: &PartitionTable) -> Option<Picture> {
    let classes = table.counts.iter().map(Vec::len).max().filter(|c| *c > 0)?.max(table.class_names.len());
    let clients = table.counts.len();
    let called = |client: usize| shorten(&table.clients.of(client), LONGEST_NAME);
    let longest = table.clients.as_slice().iter().enumerate().map(|(client, _)| called(client).chars().count()).max();
    let left = LEFT.max(34.0 + LETTER * longest.unwrap_or(0) as f64);
    let most = table.counts.iter().flatten().copied().max().unwrap_or(0).max(1);
    let cell_height = (ALL_CELLS / clients as f64).min(TALLEST);
    let cell_width = ((WIDTH - left - TOTALS - 8.0) / classes as f64).min(64.0);
    let longest = table.class_names.iter().map(|name| name.chars().count()).max().unwrap_or(0).min(LONGEST_NAME);
    let upright = longest as f64 * LETTER > cell_width;
    let name_room = if upright { 0.7 * LETTER * longest as f64 } else { 0.0 };
    let (right, top) = (left + cell_width * classes as f64, 78.0 + name_room);
    let bottom = top + cell_height * clients as f64;
    let rows: usize = table.counts.iter().flatten().sum();
    let label = format!("Rows of {clients} clients in {classes} classes");
    let mut picture = Picture::new(bottom + 58.0, &label);
    picture.text("fs-title", 20.0, 30.0, "start", "Rows by client and class");
    let facts = format!("{clients} clients \u{b7} {classes} classes \u{b7} {} rows", thousands(rows));
    picture.text("fs-muted", 20.0, 51.0, "start", &facts);

    // Names are left out where they would run into each other.
    let every_class = (16.0 / cell_width).ceil().max(1.0) as usize;
    for (class, name) in table.class_names.iter().enumerate().step_by(every_class) {
        let (x, name) = (left + (class as f64 + 0.5) * cell_width, shorten(name, LONGEST_NAME));
        if upright {
            picture.text_aslant("fs-tick", x, top - 7.0, &name)
        } else {
            picture.text("fs-tick", x, top - 8.0, "middle", &name)
        }
    }
    let slant = if upright { 14.0 } else { 0.0 };
    picture.text("fs-tick", right + 8.0 + slant, top - 8.0, "start", "total");
    let every_client = (13.0 / cell_height).ceil().max(1.0) as usize;
    for (client, counts) in table.counts.iter().enumerate() {
        let y = top + cell_height * client as f64;
        if client % every_client == 0 {
            let total: usize = counts.iter().sum();
            picture.text("fs-tick", left - 8.0, y + 0.5 * cell_height + 4.0, "end", &called(client));
            picture.text("fs-tick", right + 8.0, y + 0.5 * cell_height + 4.0, "start", &compact(total));
        }
        for (class, &count) in counts.iter().enumerate() {
            cell(&mut picture, (left + cell_width * class as f64, y), (cell_width, cell_height), count, most);
        }
    }
    picture.text_upwards("fs-text", 18.0, 0.5 * (top + bottom), "Client");
    scale(&mut picture, bottom + 22.0, most);
    Some(picture)
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

fn scale(picture: &mut Picture, y: f64, most: usize) {
    const STEPS: usize = 40;
    const LENGTH: f64 = 200.0;
    for step in 0..STEPS {
        let share = (step as f64 + 0.5) / STEPS as f64;
        let x = round(LEFT + LENGTH * step as f64 / STEPS as f64);
        let width = round(LENGTH / STEPS as f64 + 0.3);
        picture.raw(&format!(r#"<rect x="{x}" y="{y}" width="{width}" height="10" fill="{}"/>"#, colour(share)));
    }
    picture.text("fs-tick", LEFT - 8.0, y + 9.0, "end", "1");
    picture.text("fs-tick", LEFT + LENGTH + 8.0, y + 9.0, "start", &escape(&format!("{} rows", thousands(most))));
    picture.rect("fs-zero", LEFT + LENGTH + 120.0, y, 18.0, 10.0);
    picture.text("fs-tick", LEFT + LENGTH + 145.0, y + 9.0, "start", "none");
}
