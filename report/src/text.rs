//! Numbers and text as a reader sees them.

/// Text for HTML and SVG, attribute values included.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Neither these two nor control characters are allowed in XML, escaped or not.
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c if c.is_control() && !matches!(c, '\n' | '\t' | '\r') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// `96.4 %` or `−3.1 %`, which a line break does not tear apart.
pub(super) fn percent(share: f64) -> String {
    let size = format!("{:.1}", 100.0 * share.abs());
    let text = if size == "0.0" { size } else { minus(share, size) };
    format!("{text}\u{a0}%")
}

/// Four decimals below 10, three below 100, two below 1,000 and one from there on; sizes below 0.001, other than 0, and from a
/// million on in scientific notation with three decimals.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-3..1e6).contains(&size) {
        return minus(value, format!("{size:.3e}"));
    }
    let digits = if size >= 1000.0 {
        1
    } else if size >= 100.0 {
        2
    } else if size >= 10.0 {
        3
    } else {
        4
    };
    minus(value, format!("{size:.digits$}"))
}

/// A score with so many decimals, or in scientific notation where these would show nothing of it, as of targets in tiny or
/// huge units.
pub fn decimals(value: f64, digits: usize) -> String {
    let size = value.abs();
    if size == 0.0 || (0.1f64.powi(i32::try_from(digits).unwrap_or(i32::MAX))..1e7).contains(&size) || !size.is_finite()
    {
        // Adding 0 turns -0 into 0.
        format!("{:.digits$}", value + 0.0)
    } else {
        format!("{value:.3e}")
    }
}

/// `+1.2` or `−1.2` points of a hundred.
pub(super) fn points(share: f64) -> String {
    let size = format!("{:.1}", 100.0 * share.abs());
    match size.as_str() {
        "0.0" => size,
        _ if share > 0.0 => format!("+{size}"),
        _ => minus(share, size),
    }
}

/// `116,202`.
pub(super) fn thousands(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `987`, `1.2k`, `25k`, `1.3M`: at most four characters up to a thousand million.
pub(super) fn compact(count: usize) -> String {
    let n = count as f64;
    match count {
        0..1_000 => count.to_string(),
        1_000..9_950 => format!("{:.1}k", n / 1e3),
        9_950..999_500 => format!("{:.0}k", n / 1e3),
        999_500..9_950_000 => format!("{:.1}M", n / 1e6),
        _ => format!("{:.0}M", n / 1e6),
    }
}

/// `1 row`, `2 rows`.
pub(super) fn rows(count: usize) -> String {
    counted(count, "row")
}

/// `1 client`, `1,200 clients`: a number of something whose plural has an s.
pub(super) fn counted(count: usize, what: &str) -> String {
    format!("{} {what}{}", thousands(count), if count == 1 { "" } else { "s" })
}

/// The size of a number with its sign, a minus instead of a hyphen.
fn minus(value: f64, size: String) -> String {
    if value < 0.0 { format!("\u{2212}{size}") } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_readably() {
        assert_eq!(thousands(116_202), "116,202");
        assert_eq!([999, 1_234, 9_999, 999_999].map(compact), ["999", "1.2k", "10k", "1.0M"]);
        assert_eq!([0.0, 0.123_456, -12.345_67, 1e-7].map(number), ["0.0000", "0.1235", "\u{2212}12.346", "1.000e-7"]);
        assert_eq!(
            [1e-3, 9.99e-4, 2.64e-4, -3.4e-4, 123.456, 1234.56, 1e6].map(number),
            ["0.0010", "9.990e-4", "2.640e-4", "\u{2212}3.400e-4", "123.46", "1234.6", "1.000e6"]
        );
        assert_eq!(
            [0.972_51, -0.0314, 0.0004, -0.0004, -0.0].map(percent),
            ["97.3\u{a0}%", "\u{2212}3.1\u{a0}%", "0.0\u{a0}%", "0.0\u{a0}%", "0.0\u{a0}%"]
        );
        assert_eq!([0, 1, 1200].map(|count| counted(count, "client")), ["0 clients", "1 client", "1,200 clients"]);
        assert_eq!(
            [-0.0, 0.97251, -3.0, 2e-4, 3e6].map(|value| decimals(value, 4)),
            ["0.0000", "0.9725", "-3.0000", "0.0002", "3000000.0000"]
        );
        assert_eq!([3.21e-5, -4.5e7, f64::NAN].map(|value| decimals(value, 4)), ["3.210e-5", "-4.500e7", "NaN"]);
        assert_eq!([0.0123, -0.0123, -0.0001].map(points), ["+1.2", "\u{2212}1.2", "0.0"]);
        assert_eq!(escape("<a href='x'>&\u{1}"), "&lt;a href=&#39;x&#39;&gt;&amp;\u{fffd}");
        assert_eq!(escape("\u{fffe}\u{ffff}\u{fffd}\u{10ffff}\n"), "\u{fffd}\u{fffd}\u{fffd}\u{10ffff}\n");
    }
}
