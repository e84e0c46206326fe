//! Normal forms of texts.

use std::borrow::Cow;

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

/// Returns a text without its case, white space and punctuation, and with the compatibility variants of Unicode (such as
/// full-width digits) replaced: the form in which texts are compared.
///
/// ```
/// assert_eq!(formwork_evidence::plain("Sub-Total:\u{a0}１２"), "subtotal12");
/// ```
pub fn plain(text: &str) -> String {
    composed(text).to_lowercase().chars().filter(|c| c.is_alphanumeric() || *c == '_').collect()
}

fn composed(text: &str) -> Cow<'_, str> {
    match text.is_ascii() {
        true => text.into(),
        false => ComposingNormalizerBorrowed::new_nfkc().normalize(text),
    }
}

/// The marks between two numbers in the form of [`exactly`]: for `:` and `/`, and for others, which may be left out.
const APART: char = '\u{1}';
const MAYBE_APART: char = '\u{2}';

/// Returns whether two texts are the same without their case, white space and punctuation. Symbols, the signs of numbers and the marks of
/// their decimals count, and so do `:` and `/` between two numbers: `1:30` is not `130`.
pub(crate) fn is_same_text(one: &str, other: &str) -> bool {
    let (one, other) = (exactly(one), exactly(other));
    let (mut one, mut other) = (one.chars().peekable(), other.chars().peekable());
    let is_mark = |c: &char| matches!(*c, APART | MAYBE_APART);
    loop {
        let marks = (one.next_if(is_mark), other.next_if(is_mark));
        if matches!(marks, (Some(APART), None) | (None, Some(APART))) {
            return false;
        }
        match (one.next(), other.next()) {
            (None, None) => return true,
            (one, other) if one != other => return false,
            _ => {}
        }
    }
}

/// Returns a text as [`plain`] does, with its symbols, the signs of its numbers, the marks of their decimals, and marks between numbers.
fn exactly(text: &str) -> String {
    // Small letters of capital ones, so that `ß` and `SS` are the same.
    let letters: Vec<char> = composed(text).to_uppercase().to_lowercase().chars().collect();
    let at = |index: usize| letters.get(index).copied().unwrap_or(' ');
    let is_digit = |index: usize| at(index).is_ascii_digit();
    let is_mark = |c: char| matches!(c, '.' | ',');
    let (mut out, mut index, mut mark) = (String::new(), 0, None);
    while let Some(letter) = letters.get(index).copied() {
        let before = |count: usize| index.checked_sub(count).map_or(' ', at);
        let is_begin = !(before(1).is_alphanumeric() || is_mark(before(1)));
        if letter.is_ascii_digit() || is_mark(letter) && is_digit(index + 1) && is_begin {
            let is_part = |next: &usize| is_digit(*next) || is_mark(at(*next)) && is_digit(next + 1);
            let end = (index..).find(|next| !is_part(next)).unwrap_or(index + 1);
            out.extend(mark.take().filter(|_| out.ends_with(|c: char| c.is_ascii_digit())));
            number(letters.get(index..end).unwrap_or_default(), &mut out);
            index = end;
            continue;
        }
        // A dash between two numbers, or within a name, is no sign.
        let is_free = before(1).is_whitespace()
            || matches!(before(1), '(' | '[')
            || is_symbol(before(1)) && !before(2).is_alphanumeric();
        let is_dash = matches!(letter, '-' | '\u{2212}') && is_free;
        if is_dash && is_symbol(at(index + 1)) && is_digit(index + 2) {
            out.extend([at(index + 1), '-']);
            index += 1;
        } else if is_dash && is_digit(index + 1) {
            out.push('-');
        } else if is_symbol(letter) || letter.is_alphanumeric() || letter == '_' {
            out.push(if letter == '\u{d7}' { 'x' } else { letter });
        } else if matches!(letter, ':' | '/') {
            mark = Some(APART);
        } else {
            mark = mark.or(Some(MAYBE_APART));
        }
        index += 1;
    }
    out
}

/// Writes a number with its decimals. Its last mark is one of decimals if it is no other mark as well, and one or two digits follow it, or
/// after a point four or more, unless they are a year; all other marks separate thousands, the parts of a date, or those of a version.
fn number(token: &[char], out: &mut String) {
    let marks: Vec<usize> =
        (0..token.len()).filter(|at| token.get(*at).is_some_and(|c| !c.is_ascii_digit())).collect();
    let decimals = marks.split_last().filter(|(last, others)| {
        let is_other = |at: &usize| token.get(*at) != token.get(**last);
        let (whole, fraction) = token.split_at(**last);
        let is_zero = matches!(whole, [] | ['0']);
        let is_year = fraction.len() == 5
            && whole.len() <= 2
            && matches!(fraction, [_, '1', '9', ..] | [_, '2', '0', ..]);
        let is_long = fraction.first() == Some(&'.') && fraction.len() > 4 && !is_year;
        ((2..=3).contains(&fraction.len()) || is_zero || is_long) && others.iter().all(is_other)
    });
    let end = decimals.map_or(token.len(), |(last, _)| *last);
    let digits = |part: &[char]| part.iter().filter(|c| c.is_ascii_digit()).collect::<String>();
    let whole = token.get(..end).unwrap_or_default().iter();
    let whole: String = whole.map(|c| if c.is_ascii_digit() { *c } else { MAYBE_APART }).collect();
    out.push_str(if whole.is_empty() { "0" } else { &whole });
    let fraction = digits(token.get(end..).unwrap_or_default());
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
}

/// Returns whether a character is neither a letter, a digit, white space nor punctuation.
fn is_symbol(c: char) -> bool {
    match c {
        _ if c.is_ascii() => matches!(c, '$' | '%' | '+' | '<' | '=' | '>' | '^' | '|' | '~'),
        '\u{2030}' => true,
        '\u{589}' | '\u{61c}' | '\u{964}' | '\u{965}' => false,
        _ => !(c.is_alphanumeric() || is_ignored(c) || is_mark(c)),
    }
}

/// Appends the folded form of a cluster (a character with its combining marks): decomposed, in the lower case of its upper case, so that
/// `ß` and `SS` are the same, and a final sigma is the same letter; without the vowel marks of Arabic, which most texts omit.
pub(crate) fn fold_into(cluster: &str, out: &mut String) {
    if cluster.is_ascii() {
        let start = out.len();
        out.push_str(cluster);
        return out.get_mut(start..).into_iter().for_each(str::make_ascii_lowercase);
    }
    let decomposed = DecomposingNormalizerBorrowed::new_nfkd().normalize(cluster);
    let letters = decomposed.chars().filter(|c| !matches!(c, '\u{64b}'..='\u{652}' | '\u{670}'));
    out.extend(letters.flat_map(char::to_uppercase).flat_map(char::to_lowercase));
}

/// Returns the folded form of a text, without white space and punctuation.
pub(crate) fn folded(text: &str) -> String {
    let mut out = String::new();
    for (start, end) in clusters(text, 0) {
        let cluster = text.get(start..end).unwrap_or_default();
        if !is_ignored(cluster.chars().next().unwrap_or(' ')) {
            fold_into(cluster, &mut out);
        }
    }
    out
}

/// Returns the byte ranges of the clusters of a text from a byte offset on.
pub(crate) fn clusters(text: &str, from: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut chars = text.get(from..).unwrap_or_default().char_indices().peekable();
    std::iter::from_fn(move || {
        let (start, first) = chars.next()?;
        let mut end = start + first.len_utf8();
        while let Some((at, mark)) = chars.next_if(|(_, next)| is_mark(*next)) {
            end = at + mark.len_utf8();
        }
        Some((from + start, from + end))
    })
}

/// Returns whether a character continues the cluster of the character before it: a combining mark of a script that writes
/// them apart from letters, a variation selector, or a modifier of an emoji.
pub(crate) fn is_mark(c: char) -> bool {
    // Most characters end here.
    c >= '\u{300}'
        && matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}'..='\u{5c2}'
        | '\u{5c4}'..='\u{5c5}' | '\u{5c7}' | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}' | '\u{670}'
        | '\u{6d6}'..='\u{6dc}' | '\u{6df}'..='\u{6e4}' | '\u{93c}' | '\u{93e}'..='\u{94d}' | '\u{9bc}'
        | '\u{9be}'..='\u{9cd}' | '\u{bbe}'..='\u{bcd}' | '\u{e31}' | '\u{e34}'..='\u{e3a}' | '\u{e47}'..='\u{e4e}'
        | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{3099}'..='\u{309a}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}' | '\u{ff9e}'..='\u{ff9f}' | '\u{1f3fb}'..='\u{1f3ff}'
        | '\u{200d}')
}

/// Returns whether a character carries no content for a comparison: white space, control characters, punctuation.
pub(crate) fn is_ignored(c: char) -> bool {
    match c.is_ascii() {
        true => !c.is_ascii_alphanumeric(),
        false => {
            !c.is_alphanumeric()
                && (c.is_whitespace()
                    || c.is_control()
                    || matches!(c,
                        '\u{a1}' | '\u{a7}'..='\u{a8}' | '\u{ab}' | '\u{ad}' | '\u{b4}' | '\u{b6}'..='\u{b8}' | '\u{bb}'
                        | '\u{bf}' | '\u{2000}'..='\u{206f}' | '\u{2212}' | '\u{2500}'..='\u{259f}' | '\u{3000}'..='\u{3003}'
                        | '\u{3008}'..='\u{301f}' | '\u{30fb}' | '\u{feff}' | '\u{ff01}'..='\u{ff0f}'
                        | '\u{ff1a}'..='\u{ff20}' | '\u{ff3b}'..='\u{ff40}' | '\u{ff5b}'..='\u{ff65}'
                        | '\u{60c}' | '\u{61b}' | '\u{61f}' | '\u{66a}'..='\u{66d}' | '\u{6d4}' | '\u{5be}' | '\u{5c0}'
                        | '\u{5c3}' | '\u{5f3}'..='\u{5f4}'))
        }
    }
}

/// Returns whether a character is written without spaces between words, so that each character is a token of its own.
pub(crate) fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1100}'..='\u{11ff}' | '\u{1780}'..='\u{17ff}'
        | '\u{2e80}'..='\u{2fff}' | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{3130}'..='\u{9fff}'
        | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}')
}

/// Returns whether words of the script of a character are also written with prefixes and endings attached, so that a value may
/// begin or end within a written word: Hebrew and Arabic.
pub(crate) fn has_clitics(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{6ff}' | '\u{750}'..='\u{77f}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

/// Returns the signs that belong to the word before an offset, as in `C++`, `C#` and `A+`: it is another word without them. A single sign
/// belongs to a single letter that does not go on behind it: `years+`, `10M+`, `PO#` and `A+ve` have none.
pub(crate) fn signs_after(text: &str, at: usize) -> &str {
    let (before, after) = text.split_at_checked(at).unwrap_or_default();
    let count = after.bytes().take(3).take_while(|byte| matches!(byte, b'+' | b'#')).count();
    let (signs, rest) = after.split_at(count);
    let others = before.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_alone =
        before.len() - others.len() == 1 && !(count == 1 && rest.starts_with(char::is_alphanumeric));
    let is_word =
        others.len() < before.len() && !others.ends_with(|c: char| c.is_alphanumeric() || "+#".contains(c));
    if is_word && (signs == "++" || count == 1 && is_alone) { signs } else { "" }
}

/// Returns the decimal digit that a character of any script represents.
pub(crate) fn digit(c: char) -> Option<u32> {
    const ZEROS: [u32; 12] =
        [0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xe50, 0xed0, 0xff10];
    if c.is_ascii() {
        return c.to_digit(10);
    }
    ZEROS.iter().find_map(|zero| (u32::from(c)).checked_sub(*zero).filter(|digit| *digit < 10))
}

/// Returns the words of a member name or of a description, folded: `invoiceDate`, `invoice_date` and `Invoice date` have the
/// same words.
pub(crate) fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut before) = (Vec::new(), String::new(), ' ');
    for (start, end) in clusters(text, 0) {
        let cluster = text.get(start..end).unwrap_or_default();
        let first = cluster.chars().next().unwrap_or(' ');
        let breaks = is_ignored(first)
            || is_unspaced(first)
            || (before.is_lowercase() && first.is_uppercase())
            || digit(before).is_some() != digit(first).is_some();
        if breaks && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if !is_ignored(first) {
            fold_into(cluster, &mut word);
        }
        before = first;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

pub(crate) fn offset(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

pub(crate) fn size(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
