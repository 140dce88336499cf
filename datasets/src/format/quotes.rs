//! Where the quotes of a table open and close, by the rules of the csv crate, which takes the end of a file for a closing
//! quote.

/// A place in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opening {
    /// The line, from 1.
    pub line: u64,
    /// The column, from 0.
    pub column: usize,
}

/// What the next byte of a table means.
#[derive(Clone, Copy, PartialEq)]
enum State {
    /// It is the first one of a cell.
    Start,
    /// It is one of a cell without quotes, or follows a closed quote.
    Plain,
    /// It is one of a cell in quotes.
    Quoted,
    /// It follows a quote in such a cell, which closes the cell unless another one follows.
    Quote,
    /// It follows such a quote and blanks.
    Closed,
}

/// The quotes in a stream of bytes, as far as it has been read.
pub(super) struct Quotes {
    delimiter: u8,
    state: State,
    /// The place of the present cell.
    at: Opening,
    /// Where the last quote opened.
    opened: Opening,
    /// Where the first quote opened behind which a cell goes on after it is closed.
    followed: Option<Opening>,
    /// The number of bytes so far, up to the length of a byte order mark.
    read: usize,
    /// Whether the last byte was a carriage return.
    after_return: bool,
}

const MARK: &[u8] = "\u{feff}".as_bytes();

impl Quotes {
    pub fn new(delimiter: u8) -> Self {
        let at = Opening { line: 1, column: 0 };
        Self { delimiter, state: State::Start, at, opened: at, followed: None, read: 0, after_return: false }
    }

    /// Reads on.
    pub fn read(&mut self, bytes: &[u8]) {
        let is_within = matches!(self.state, State::Quoted | State::Quote | State::Closed) || self.after_return;
        if self.read < MARK.len() || is_within || bytes.contains(&b'"') || bytes.contains(&b'\r') {
            bytes.iter().for_each(|&byte| self.read_byte(byte));
        } else {
            self.read_plain(bytes);
        }
    }

    /// Reads bytes without a quote or a carriage return, outside of quotes: most of a large table.
    fn read_plain(&mut self, bytes: &[u8]) {
        let Some(&last) = bytes.last() else { return };
        let count = |byte: u8, bytes: &[u8]| bytes.iter().filter(|&&other| other == byte).count();
        let mut line = bytes;
        if let Some(end) = bytes.iter().rposition(|&byte| byte == b'\n') {
            self.at = Opening { line: self.at.line + count(b'\n', bytes) as u64, column: 0 };
            line = &bytes[end + 1..];
        }
        self.at.column += count(self.delimiter, line);
        self.state = if last == b'\n' || last == self.delimiter { State::Start } else { State::Plain };
    }

    /// The quote that is open after the bytes so far.
    pub fn open(&self) -> Option<Opening> {
        (self.state == State::Quoted).then_some(self.opened)
    }

    /// The first quote so far whose cell goes on after the closing quote, as where a quote in a line above was never closed.
    pub fn followed(&self) -> Option<Opening> {
        self.followed
    }

    fn read_byte(&mut self, byte: u8) {
        if self.read < MARK.len() {
            self.read += 1;
            if self.state == State::Start && byte == MARK[self.read - 1] {
                return;
            }
        }
        let ends_line = byte == b'\r' || byte == b'\n';
        if ends_line && !(self.after_return && byte == b'\n') {
            self.at.line += 1;
        }
        self.after_return = byte == b'\r';
        self.state = match (self.state, byte) {
            (State::Start, b'"') => {
                self.opened = self.at;
                State::Quoted
            }
            (State::Quoted, b'"') => State::Quote,
            (State::Quoted, _) | (State::Quote, b'"') => State::Quoted,
            _ if ends_line => {
                self.at.column = 0;
                State::Start
            }
            _ if byte == self.delimiter => {
                self.at.column += 1;
                State::Start
            }
            (State::Quote | State::Closed, b' ' | b'\t') => State::Closed,
            (State::Quote | State::Closed, _) => {
                self.followed.get_or_insert(self.opened);
                State::Plain
            }
            _ => State::Plain,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &str) -> Option<(u64, usize)> {
        let mut quotes = Quotes::new(b',');
        quotes.read(text.as_bytes());
        quotes.open().map(|Opening { line, column }| (line, column))
    }

    #[test]
    fn the_quote_that_is_not_closed_has_a_line_and_a_column() {
        for (text, place) in [
            ("a,b\n1,\"2", Some((2, 1))),
            ("\"a,b\n1,2\n", Some((1, 0))),
            ("\u{feff}\"a\n", Some((1, 0))),
            ("a\r\n\r\n\"x\"\"\r\n", Some((3, 0))),
            ("a,b\r\"x\ry\",\"", Some((3, 1))),
            ("\"a\"", None),
            ("\"a\nb\",\"\"\n", None),
            ("\"a \"\"b\"\" c\"\n", None),
            // A quote within a cell is a character as any other.
            ("a,5\" tube\n", None),
            ("a, \"b\n", None),
            ("a,\"b\"c\"d\n", None),
            ("", None),
        ] {
            assert_eq!(open(text), place, "{text:?}");
        }
    }

    #[test]
    fn a_cell_that_goes_on_after_its_closing_quote_has_a_line_and_a_column() {
        for (text, place) in [
            ("a,\"b\"c\n", Some((1, 1))),
            ("a\n\"b,c\n1,2\n\"d, e\",3\n\"f\"g\n", Some((2, 0))),
            ("\"a\" \"b\"\n", Some((1, 0))),
            ("\"a\" \t,\"b\"\r\n\"c\"", None),
            ("\"a \"\"b\"\"\",5\" tube\n", None),
        ] {
            let mut quotes = Quotes::new(b',');
            quotes.read(text.as_bytes());
            let found = quotes.followed().map(|Opening { line, column }| (line, column));
            assert_eq!(found, place, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn pieces_are_read_as_the_whole(pieces in proptest::collection::vec("[a, \n]{0,5}|[a,\" \r\n]{0,5}", 1..6)) {
            let mut quotes = Quotes::new(b',');
            pieces.iter().for_each(|piece| quotes.read(piece.as_bytes()));
            let mut whole = Quotes::new(b',');
            pieces.concat().bytes().for_each(|byte| whole.read_byte(byte));
            proptest::prop_assert_eq!(
                (quotes.open(), quotes.followed(), quotes.at),
                (whole.open(), whole.followed(), whole.at)
            );
            proptest::prop_assert!(quotes.state == whole.state);
        }

        #[test]
        fn a_quote_is_open_where_the_csv_crate_takes_a_further_line_into_its_cell(text in "\u{feff}?[a,\" \r\n]{0,12}") {
            let further = format!("{text}\nz");
            let reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(further.as_bytes());
            let last = reader.into_byte_records().last().unwrap().unwrap();
            proptest::prop_assert_eq!(open(&text).is_none(), last == vec!["z"]);
        }
    }
}
