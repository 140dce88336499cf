//! Contours of two densities in the plane.

use std::fmt::Write as _;

use super::figure::{AxisSpec, LEFT, LEGEND_LETTERS, RIGHT, Scale, frame, opened};
use super::reliability::shorten;
use super::round;

/// A density on a square grid over the plane.
#[derive(Clone, Debug, PartialEq)]
pub struct Plane {
    /// The grid's coordinates, the same on both axes, ascending.
    pub axis: Vec<f64>,
    /// Density, `[axis.len(), axis.len()]`, the second coordinate fastest.
    pub density: Vec<f64>,
}

/// Contours of an approximate density over those of the exact one.
#[derive(Clone, Debug, PartialEq)]
pub struct ContourFigure {
    /// Its heading.
    pub title: String,
    /// What to know about it, in a line.
    pub subtitle: String,
    /// Name and density of the approximation: solid lines.
    pub approximate: (String, Plane),
    /// The exact density: dashed lines. Its maximum sets the levels.
    pub exact: Plane,
}

/// Levels of the contours, as shares of the exact density's maximum.
const LEVELS: [f64; 5] = [0.1, 0.3, 0.5, 0.7, 0.9];

impl ContourFigure {
    /// The figure as an SVG file; `None` where the exact density has no mass, or a density does not fit its
    /// grid.
    pub fn svg(&self) -> Option<String> {
        if [&self.exact, &self.approximate.1].iter().any(|plane| plane.density.len() != plane.axis.len().pow(2)) {
            return None;
        }
        let highest = self.exact.density.iter().copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
        let range = self.window(LEVELS[0] * highest)?;
        let side = RIGHT - LEFT;
        let (top, bottom) = (100.0, 100.0 + side);
        let spec = |label: &str| AxisSpec { label: label.to_owned(), log: false, range: Some(range) };
        let x = Scale::new(&spec(""), std::iter::empty(), false)?.over(LEFT, RIGHT);
        let y = Scale::new(&spec(""), std::iter::empty(), false)?.over(bottom, top);
        let mut picture = opened(bottom + 52.0, &self.title, &self.subtitle);
        for (at, class, name) in
            [(LEFT, "fg fg-s0", self.approximate.0.as_str()), (LEFT + 0.5 * side, "fg fg-s1 fg-d1", "exact posterior")]
        {
            picture.line(class, (at, 72.0), (at + 26.0, 72.0));
            picture.text("fs-muted", at + 33.0, 76.0, "start", &shorten(name, LEGEND_LETTERS));
        }
        frame(&mut picture, (&x, "\u{3b8}\u{2081}"), (&y, "\u{3b8}\u{2082}"), (top, bottom));
        picture.raw(&format!(
            r#"<clipPath id="fg-plot"><rect x="{LEFT}" y="{top}" width="{side}" height="{side}"/></clipPath>"#
        ));
        picture.raw(r#"<g clip-path="url(#fg-plot)">"#);
        for (plane, class) in [(&self.exact, "fg-thin fg-s1 fg-d1"), (&self.approximate.1, "fg-thin fg-s0")] {
            for level in LEVELS {
                let path = contour(plane, level * highest, &x, &y);
                picture.raw(&format!(r#"<path class="{class}" d="{path}"/>"#));
            }
        }
        picture.raw("</g>");
        Some(picture.standalone())
    }

    /// The smallest square range that holds all that either density has above a level.
    fn window(&self, level: f64) -> Option<(f64, f64)> {
        let mut ends: Option<(f64, f64)> = None;
        for plane in [&self.exact, &self.approximate.1] {
            let n = plane.axis.len();
            for (cell, _) in plane.density.iter().enumerate().filter(|(_, value)| **value >= level && level > 0.0) {
                for coordinate in [plane.axis[cell / n], plane.axis[cell % n]] {
                    let (low, high) = ends.unwrap_or((coordinate, coordinate));
                    ends = Some((low.min(coordinate), high.max(coordinate)));
                }
            }
        }
        ends.map(|(low, high)| ((low - 0.5).floor(), (high + 0.5).ceil()))
    }
}

/// The line along which a density has a value, as the `d` of a path: marching squares, cell by cell.
fn contour(plane: &Plane, level: f64, x: &Scale, y: &Scale) -> String {
    let (axis, n) = (&plane.axis, plane.axis.len());
    let mut path = String::new();
    for i in 0..n.saturating_sub(1) {
        for j in 0..n - 1 {
            // Corners in turn around the cell; the first coordinate runs along x.
            let corners = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)];
            let value = |(i, j): (usize, usize)| plane.density[i * n + j];
            let mut crossings = Vec::with_capacity(4);
            for side in 0..4 {
                let (from, to) = (corners[side], corners[(side + 1) % 4]);
                let (a, b) = (value(from), value(to));
                if (a >= level) != (b >= level) {
                    let share = (level - a) / (b - a);
                    let between = |from: usize, to: usize| axis[from] + share * (axis[to] - axis[from]);
                    crossings.push((x.at(between(from.0, to.0)), y.at(between(from.1, to.1))));
                }
            }
            for ends in crossings.chunks_exact(2) {
                let [x1, y1, x2, y2] = [ends[0].0, ends[0].1, ends[1].0, ends[1].1].map(round);
                // Writing to a String cannot fail.
                let _ = write!(path, "M{x1} {y1}L{x2} {y2}");
            }
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contour_of_a_cone_is_a_circle() {
        let axis: Vec<f64> = (0..81).map(|i| -4.0 + 0.1 * f64::from(i)).collect();
        let density = axis.iter().flat_map(|x| axis.iter().map(move |y| (4.0 - x.hypot(*y)).max(0.0))).collect();
        let plane = Plane { axis, density };
        let unit = AxisSpec { range: Some((-4.0, 4.0)), ..AxisSpec::default() };
        let scale = Scale::new(&unit, std::iter::empty(), false).unwrap().over(-4.0, 4.0);
        let path = contour(&plane, 2.0, &scale, &scale);
        let numbers: Vec<f64> = path.split(['M', 'L', ' ']).filter_map(|word| word.parse().ok()).collect();
        assert!(numbers.len() > 200);
        for point in numbers.chunks_exact(2) {
            // Linear interpolation on a grid of 0.1, rounded to 0.01.
            assert!((point[0].hypot(point[1]) - 2.0).abs() < 0.02, "{point:?}");
        }
        let figure = ContourFigure {
            title: "T".into(),
            subtitle: String::new(),
            approximate: ("q".into(), plane.clone()),
            exact: plane,
        };
        assert_eq!(figure.svg().unwrap().matches("<path class=\"fg-thin").count(), 2 * LEVELS.len());
    }
}
