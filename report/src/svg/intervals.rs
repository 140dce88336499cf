//! Means with their intervals, one below the other, and the single values behind each.

use super::figure::{Scale, mark, opened};
use super::reliability::shorten;
use super::{AxisSpec, WIDTH, round};

const LEFT: f64 = 190.0;
const RIGHT: f64 = WIDTH - 22.0;
const TOP: f64 = 68.0;
const ROW: f64 = 26.0;
const HEADING: f64 = 26.0;
/// Letters that fit to the left of the axis.
const LETTERS: usize = 24;

/// Means with their intervals over one axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IntervalFigure {
    /// The heading.
    pub title: String,
    /// A description in one line.
    pub subtitle: String,
    /// The axis.
    pub x: AxisSpec,
    /// The rows, in groups from top to bottom; rows at the same place of several groups have one colour.
    pub groups: Vec<IntervalGroup>,
}

/// Rows under a heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IntervalGroup {
    /// The heading; empty for none.
    pub name: String,
    /// The rows.
    pub rows: Vec<IntervalRow>,
}

/// A mean.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IntervalRow {
    /// Its name.
    pub name: String,
    /// The mean; `None` for a row that stays empty.
    pub mean: Option<f64>,
    /// The ends of its interval.
    pub interval: Option<(f64, f64)>,
    /// The values behind it.
    pub values: Vec<f64>,
}

impl IntervalFigure {
    /// The figure as an SVG file; `None` without a mean to draw.
    pub fn svg(&self) -> Option<String> {
        let rows = || self.groups.iter().flat_map(|group| &group.rows);
        let ends = |row: &IntervalRow| row.interval.map(|(low, high)| [low, high]).into_iter().flatten();
        let shown = rows().flat_map(|row| row.mean.into_iter().chain(ends(row)).chain(row.values.iter().copied()));
        let x = Scale::new(&self.x, shown, true)?.over(LEFT, RIGHT);
        let headings = self.groups.iter().filter(|group| !group.name.is_empty()).count();
        let bottom = TOP + ROW * rows().count() as f64 + HEADING * headings as f64 + 6.0;
        let mut picture = opened(bottom + 52.0, &self.title, &self.subtitle);
        for tick in &x.ticks {
            picture.line("fs-grid", (x.at(*tick), TOP), (x.at(*tick), bottom));
            picture.text("fs-tick", x.at(*tick), bottom + 18.0, "middle", &x.label(*tick));
        }
        picture.line("fs-axis", (LEFT, bottom), (RIGHT, bottom));
        picture.text("fs-text", 0.5 * (LEFT + RIGHT), bottom + 40.0, "middle", &self.x.label);
        let mut y = TOP;
        for group in &self.groups {
            if !group.name.is_empty() {
                picture.text("fs-text", 20.0, y + 17.0, "start", &shorten(&group.name, 70));
                y += HEADING;
            }
            for (index, row) in group.rows.iter().enumerate() {
                let middle = y + 0.5 * ROW;
                picture.text("fs-muted", LEFT - 12.0, middle + 4.0, "end", &shorten(&row.name, LETTERS));
                for value in &row.values {
                    let (cx, cy, colour) = (round(x.at(*value)), round(middle), index % 10);
                    picture.raw(&format!(r#"<circle cx="{cx}" cy="{cy}" r="2" class="fg-f{colour}" opacity="0.4"/>"#));
                }
                if let Some((low, high)) = row.interval {
                    picture.line(&format!("fg fg-s{}", index % 10), (x.at(low), middle), (x.at(high), middle));
                }
                if let Some(mean) = row.mean {
                    mark(&mut picture, index, x.at(mean), middle);
                }
                y += ROW;
            }
        }
        Some(picture.standalone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(rows: Vec<IntervalRow>) -> IntervalFigure {
        let groups = vec![IntervalGroup { name: "north & south".into(), rows }];
        IntervalFigure { title: "T".into(), groups, ..IntervalFigure::default() }
    }

    #[test]
    fn a_row_has_its_mean_its_interval_and_its_values() {
        let row = IntervalRow { name: "a".into(), mean: Some(2.0), interval: Some((1.5, 2.5)), values: vec![1.8, 2.2] };
        let without = IntervalRow { name: "b".into(), ..IntervalRow::default() };
        let svg = figure(vec![row, without]).svg().unwrap();
        assert_eq!(svg.matches("r=\"2\"").count(), 2);
        assert_eq!(svg.matches("<line class=\"fg fg-s0\"").count(), 1);
        assert_eq!(svg.matches("fg-solid").count(), 2 + 1, "twice in the style, and one mark");
        assert!(svg.contains("north &amp; south"));
        assert!(svg.contains(">b</text>"), "a row without a mean has its name");
    }

    #[test]
    fn without_a_mean_nothing_is_drawn() {
        assert_eq!(figure(vec![IntervalRow::default()]).svg(), None);
        assert_eq!(IntervalFigure::default().svg(), None);
    }
}
