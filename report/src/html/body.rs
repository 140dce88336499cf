//! What the sections of the page are made of: headings, tables, cards, and numbers in their units.

use std::fmt::Write as _;

use crate::metrics::{Interval, Unit};
use crate::overall::Overall;
use crate::svg::Picture;
use crate::text::{escape, number, percent, points, rows, thousands};

/// The text in the place of a missing value.
pub(super) const NOTHING: &str = "\u{2013}";

/// A value in its unit.
pub(super) fn shown(unit: Unit, value: Option<f64>) -> String {
    match (unit, value) {
        (_, None) => NOTHING.to_owned(),
        (Unit::Share, Some(share)) => percent(share),
        (Unit::Points, Some(gap)) => format!("{} points", points(gap)),
        (Unit::Rows, Some(rows)) => count(rows as usize),
        (Unit::One | Unit::Nats | Unit::Target, Some(value)) => number(value),
    }
}

/// An interval in the unit of its metric; empty for none.
pub(super) fn interval(unit: Unit, range: Option<Interval>) -> String {
    let end = match unit {
        Unit::Share => percent,
        Unit::Points => points,
        Unit::One | Unit::Nats | Unit::Target | Unit::Rows => number,
    };
    range.map_or(String::new(), |range| format!("{} to {}", end(range.lo), end(range.hi)))
}

/// The ends of an interval of a share, in percent.
pub(super) fn shares(range: Interval) -> String {
    format!("{:.1} to {:.1}", 100.0 * range.lo, 100.0 * range.hi)
}

/// A value with an interval in small print below it, if there is one.
pub(super) fn with_range(value: String, range: &str) -> String {
    if range.is_empty() { value } else { format!("{value}<br><small>{range}</small>") }
}

pub(super) fn or_dash(value: Option<f64>) -> String {
    value.map_or(NOTHING.to_owned(), number)
}

/// What the resamples of a report's intervals are of.
pub(super) fn resampled(overall: &Overall) -> String {
    match overall.size("clusters") {
        Some(clusters) => format!("{} clusters of {}", thousands(clusters), rows(overall.n)),
        None => rows(overall.n),
    }
}

/// A headline number: name, value, a note below.
pub(super) struct Card {
    name: &'static str,
    value: String,
    note: String,
}

impl Card {
    pub fn new(name: &'static str, value: String, note: String) -> Self {
        Self { name, value, note }
    }
}

/// The page's content so far. Cells and notes are HTML, which the functions that make them escape.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub text: String,
}

impl Body {
    pub fn raw(&mut self, html: &str) {
        self.text.push_str(html);
        self.text.push('\n');
    }

    pub fn heading(&mut self, title: &str) {
        self.raw(&format!("<h2>{}</h2>", escape(title)));
    }

    pub fn paragraph(&mut self, text: &str) {
        self.raw(&format!("<p>{}</p>", escape(text)));
    }

    pub fn note(&mut self, text: &str) {
        self.raw(&format!("<p class=\"note\">{}</p>", escape(text)));
    }

    pub fn picture(&mut self, picture: &Picture) {
        self.raw(&format!("<figure>{}</figure>", picture.inline()));
    }

    pub fn cards(&mut self, cards: &[Card]) {
        self.raw("<section class=\"cards\">");
        for Card { name, value, note } in cards {
            let note = if note.is_empty() { String::new() } else { format!("<small>{}</small>", escape(note)) };
            self.raw(&format!("<div><b>{}</b><strong>{}</strong>{note}</div>", escape(name), escape(value)));
        }
        self.raw("</section>");
    }

    /// A table that scrolls sideways on its own; the first column is text, the others numbers.
    pub fn table(&mut self, header: &[&str], rows: &[Vec<String>]) {
        self.table_of("scroll", header, rows);
    }

    /// A table whose last column is text too.
    pub fn table_of_words(&mut self, header: &[&str], rows: &[Vec<String>]) {
        self.table_of("scroll words", header, rows);
    }

    pub fn table_of(&mut self, class: &str, header: &[&str], rows: &[Vec<String>]) {
        let _ = write!(self.text, "<div class=\"{class}\"><table>");
        if !header.is_empty() {
            let cells: String = header.iter().map(|name| format!("<th scope=\"col\">{}</th>", escape(name))).collect();
            let _ = write!(self.text, "<thead><tr>{cells}</tr></thead>");
        }
        self.text.push_str("<tbody>");
        for row in rows {
            let cells: String = row.iter().map(|cell| format!("<td>{cell}</td>")).collect();
            let _ = writeln!(self.text, "<tr>{cells}</tr>");
        }
        self.raw("</tbody></table></div>");
    }
}

pub(super) fn count(n: usize) -> String {
    thousands(n)
}
