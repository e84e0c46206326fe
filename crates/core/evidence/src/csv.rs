//! The commas between the cells of lines.

use crate::decimal::{is_currency, readings};
use crate::text::{digit, offset};

/// Lines below each other with equally many commas.
#[derive(Debug, Default)]
struct Run {
    commas: Vec<u32>,
    of_each: usize,
    lines: usize,
    /// The number of lines with a comma that no number has.
    apart: usize,
    begins_apart: bool,
    /// The number of lines with other characters than digits, points and commas.
    worded: usize,
}

impl Run {
    /// Returns the commas if they separate cells: a header or half of the lines has some that cannot be marks of a number; of lines of
    /// digits alone, one line.
    fn cells(self) -> Vec<u32> {
        let is_table = self.worded == 0 && self.apart > 0;
        let is_csv = self.lines >= 2 && (self.begins_apart || is_table || 2 * self.apart >= self.lines);
        if is_csv { self.commas } else { Vec::new() }
    }
}

/// Returns the byte offsets of the commas between cells, in order: of lines with at least two of them, as many as in a line beside it, where
/// they are [no marks of numbers](Run::cells).
pub(crate) fn cell_commas(text: &str) -> Vec<u32> {
    let (mut found, mut run, mut start) = (Vec::new(), Run::default(), 0);
    for line in text.split('\n') {
        let commas = commas(line);
        if run.of_each != commas.len() {
            found.extend(std::mem::take(&mut run).cells());
            run.of_each = commas.len();
        }
        if !commas.is_empty() {
            let is_apart = run.begins_apart || !are_marks(line);
            run.begins_apart |= run.lines == 0 && is_apart;
            run.apart += usize::from(is_apart);
            run.worded +=
                usize::from(line.bytes().any(|byte| !byte.is_ascii_digit() && !b",.\r".contains(&byte)));
            run.lines += 1;
            run.commas.extend(commas.into_iter().map(|at| offset(start + at)));
        }
        start += line.len() + 1;
    }
    found.extend(run.cells());
    found
}

/// Returns the offsets of the commas of a line outside of quoted cells; none if there is one, if a space follows one, or if the line has other
/// separators of cells.
fn commas(line: &str) -> Vec<usize> {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let bytes = line.as_bytes().get(indent..).unwrap_or_default();
    if memchr::memchr_iter(b',', bytes).nth(1).is_none() {
        return Vec::new();
    }
    let (mut found, mut is_quoted, mut before) = (Vec::new(), false, b',');
    for (at, byte) in (indent..).zip(bytes.iter().copied()) {
        match byte {
            // Two quotation marks in a quoted cell are one of its text.
            b'"' => is_quoted = !is_quoted && matches!(before, b',' | b'"'),
            _ if is_quoted => {}
            b',' => found.push(at),
            b'\t' | b'|' | b';' => return Vec::new(),
            b' ' if matches!(before, b',' | b' ') => return Vec::new(),
            _ => {}
        }
        before = byte;
    }
    if found.len() < 2 { Vec::new() } else { found }
}

/// Returns whether all commas of a line may be marks of numbers: `USD 1,234.50` rather than `nuts,10`.
fn are_marks(line: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || digit(c).is_some() || ".,'-/:_".contains(c);
    line.split(|c| !is_part(c)).filter(|part| part.contains(',')).all(|part| {
        let is_other = |c: char| c != ',' && digit(c).is_none();
        let number = part.trim_start_matches(is_other);
        let before = part.strip_suffix(number).unwrap_or_default();
        // A number within a word, as in `M8`, has no marks.
        let is_word = before.ends_with(char::is_alphabetic) && !is_currency(&before.to_lowercase());
        let number = number.trim_end_matches(is_other);
        !is_word && !number.starts_with(',') && !readings(number).is_empty()
    })
}

/// Returns whether the text between two tokens separates cells.
pub(crate) fn is_cell_break(gap: &str) -> bool {
    gap.contains(['\t', '|', '\n', ';']) || gap.contains("  ") || gap == "," || gap.contains("><")
}
