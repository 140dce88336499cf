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

/// What the first cell of a table's line is.
#[derive(Debug, Clone, Copy)]
pub(super) enum First {
    /// The name of the line, such as a client, a class or a run.
    Name,
    /// A value like the others, such as the range of a bin.
    Value,
}

/// The page's content so far. Cells and notes are HTML, which the functions that make them escape.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub text: String,
    part: Part,
}

/// The part of the page that is being written.
#[derive(Debug, Default)]
struct Part {
    title: String,
    /// The number of its tables so far.
    tables: usize,
}

impl Body {
    pub fn raw(&mut self, html: &str) {
        self.text.push_str(html);
        self.text.push('\n');
    }

    pub fn heading(&mut self, title: &str) {
        self.raw(&format!("<h2>{}</h2>", escape(title)));
        self.part = Part { title: title.to_owned(), tables: 0 };
    }

    /// A part that a reader opens.
    pub fn details(&mut self, summary: &str, content: impl FnOnce(&mut Self)) {
        self.raw(&format!("<details><summary>{}</summary>", escape(summary)));
        let around = std::mem::replace(&mut self.part, Part { title: summary.to_owned(), tables: 0 });
        content(self);
        self.part = around;
        self.raw("</details>");
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

    /// A table that scrolls sideways on its own; the first column has the names of the lines, the others numbers.
    pub fn table(&mut self, header: &[&str], rows: &[Vec<String>]) {
        self.table_of("scroll", First::Name, header, rows);
    }

    /// A table whose last column is text too.
    pub fn table_of_words(&mut self, header: &[&str], rows: &[Vec<String>]) {
        self.table_of("scroll words", First::Name, header, rows);
    }

    /// A table whose lines have no names.
    pub fn table_of_values(&mut self, header: &[&str], rows: &[Vec<String>]) {
        self.table_of("scroll", First::Value, header, rows);
    }

    pub fn table_of(&mut self, class: &str, first: First, header: &[&str], rows: &[Vec<String>]) {
        let region = self.region();
        let _ = write!(self.text, "<div class=\"{class}\"{region}><table>");
        if !header.is_empty() {
            let cells: String = header.iter().map(|name| format!("<th scope=\"col\">{}</th>", escape(name))).collect();
            let _ = write!(self.text, "<thead><tr>{cells}</tr></thead>");
        }
        self.text.push_str("<tbody>");
        for row in rows {
            let cell = |(at, html): (usize, &String)| match (at, first) {
                (0, First::Name) => format!("<th scope=\"row\">{html}</th>"),
                _ => format!("<td>{html}</td>"),
            };
            let cells: String = row.iter().enumerate().map(cell).collect();
            let _ = writeln!(self.text, "<tr>{cells}</tr>");
        }
        self.raw("</tbody></table></div>");
    }

    /// A text as it is, which scrolls sideways on its own.
    pub fn preformatted(&mut self, text: &str) {
        let region = self.region();
        self.raw(&format!("<pre{region}>{}</pre>", escape(text)));
    }

    /// The attributes of what scrolls sideways: the keyboard reaches it, and it is named by the heading above it, with a
    /// number from the second one on.
    fn region(&mut self) -> String {
        self.part.tables += 1;
        let title = escape(&self.part.title);
        let label = match self.part.tables {
            1 => title,
            at => format!("{title}, table {at}"),
        };
        format!(" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"")
    }
}

pub(super) fn count(n: usize) -> String {
    thousands(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_a_region_with_the_name_of_its_part_and_names_its_rows() {
        let mut body = Body::default();
        body.heading("Sites of \"A\" & <B>");
        body.table(&["Site", "Rows"], &[vec!["north".into(), "5".into()]]);
        body.details("The bins", |body| body.table_of_values(&["Bin", "Rows"], &[vec!["0 to 1".into(), "5".into()]]));
        body.table(&["Site", "Rows"], &[vec!["north".into(), "5".into()]]);
        let regions: Vec<&str> = body.text.split("<div class=\"scroll\"").skip(1).collect();
        let sites = "Sites of &quot;A&quot; &amp; &lt;B&gt;";
        let labels = [sites.to_owned(), "The bins".to_owned(), format!("{sites}, table 2")];
        assert_eq!(regions.len(), labels.len(), "{}", body.text);
        for (region, label) in regions.iter().zip(labels) {
            let opened = format!(" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table>");
            assert!(region.starts_with(&opened), "{region}");
        }
        assert!(regions[0].contains("<tr><th scope=\"row\">north</th><td>5</td></tr>"), "{}", regions[0]);
        assert!(regions[1].contains("<tr><td>0 to 1</td><td>5</td></tr>"), "{}", regions[1]);
    }
}
