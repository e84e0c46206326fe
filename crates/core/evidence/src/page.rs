//! The evidence as a page of HTML.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use crate::html::{html_text, html_value};
use crate::{Evidence, Span, Status};

const STYLE: &str = ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;margin:1.5em;\
color:light-dark(#222,#e8ebf0);background:light-dark(#fff,#14181f)}\
main{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:2em}@media(max-width:50em){main{display:block}}\
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0;font:14px/1.6 ui-monospace,monospace}\
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.25em .6em;border-bottom:1px solid light-dark(#ddd,#38404d);vertical-align:top;\
overflow-wrap:anywhere}mark{background:light-dark(#cfe8cf,#1f4d2b);color:inherit;scroll-margin:4em}mark.normalised{background:light-dark(#fff1b8,#574800)}\
mark.computed,mark.quoted{background:light-dark(#d6e4ff,#1f3a66)}mark:target,mark.several{outline:2px solid light-dark(#06c,#8ab8ff)}tr.not_found td{color:light-dark(#b00020,#ff8a80)}code{font-size:.92em}\
.values{position:sticky;top:1em;max-height:95vh;overflow:auto;align-self:start}";

/// Returns a page with the input text, in which the chosen place of each leaf is marked, and with the values beside it. Texts and
/// values are escaped. The page loads nothing and has no script.
///
/// ```
/// use formwork_evidence::{Index, page};
/// use serde_json::json;
///
/// let (text, value) = ("<b>Total</b>: 12.00", json!({"total": 12}));
/// let page = page("letter.txt", text, &value, &Index::new(text).evidence(&value, None));
/// assert!(page.contains("&lt;b&gt;Total&lt;/b&gt;: <mark id=\"v0\" class=\"normalised\" title=\"$.total\">12.00</mark>"));
/// ```
pub fn page(title: &str, text: &str, value: &Value, evidence: &[Evidence]) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title}</title><style>{STYLE}</style><header><h1>{title}</h1></header><main><pre dir=\"auto\">",
        title = html_text(title),
    );
    marked(&mut page, text, evidence);
    page.push_str("</pre><div class=\"values\"><table><tr><th>path<th>value<th>evidence");
    for (number, it) in evidence.iter().enumerate() {
        let status = name(it.status);
        let _ = write!(
            page,
            "<tr class=\"{status}\"><td><code>{}</code><td dir=\"auto\">",
            html_text(&it.path.to_string())
        );
        page.push_str(&it.path.get(value).map(html_value).unwrap_or_default());
        let places = match it.spans.len() {
            0 | 1 => String::new(),
            more => format!(" ({more} places)"),
        };
        let _ = match it.spans.first() {
            Some(_) => write!(page, "<td><a href=\"#v{number}\">{status}</a>{places}"),
            None => write!(page, "<td>{status}"),
        };
    }
    page.push_str("</table></div></main></html>\n");
    page
}

/// Appends the text with the chosen place of each leaf as a mark. Places that overlap are cut at their borders.
fn marked(page: &mut String, text: &str, evidence: &[Evidence]) {
    let chosen: Vec<(usize, Span, &Evidence)> = evidence
        .iter()
        .enumerate()
        .filter_map(|(number, it)| Some((number, *it.spans.first()?, it)))
        .collect();
    let borders: BTreeSet<usize> =
        chosen.iter().flat_map(|(_, span, _)| [span.start, span.end]).chain([0, usize::MAX]).collect();
    let mut by_start = chosen.clone();
    by_start.sort_by_key(|(number, span, _)| (span.start, *number));
    let (mut characters, mut at, mut waiting) = (text.chars(), 0, by_start.into_iter().peekable());
    let mut open: Vec<(usize, Span, &Evidence)> = Vec::new();
    for end in borders.into_iter().skip(1) {
        open.retain(|(_, span, _)| span.end > at);
        while let Some(next) = waiting.next_if(|(_, span, _)| span.start <= at) {
            open.push(next);
        }
        let part: String = characters.by_ref().take(end - at).collect();
        match open.first() {
            None => page.push_str(&html_text(&part)),
            Some((number, span, first)) => {
                let paths: Vec<String> =
                    open.iter().map(|(_, _, it)| html_text(&it.path.to_string())).collect();
                // A leaf that begins here is the target of a link. Other leaves of the same place get targets of their own.
                let id = if span.start == at { format!(" id=\"v{number}\"") } else { String::new() };
                for (number, ..) in open.iter().skip(1).filter(|(_, span, _)| span.start == at) {
                    let _ = write!(page, "<a id=\"v{number}\"></a>");
                }
                let several = if open.len() > 1 { " several" } else { "" };
                let _ = write!(
                    page,
                    "<mark{id} class=\"{}{several}\" title=\"{}\">{}</mark>",
                    name(first.status),
                    paths.join(", "),
                    html_text(&part)
                );
            }
        }
        at = end;
    }
}

const fn name(status: Status) -> &'static str {
    match status {
        Status::Exact => "exact",
        Status::Normalised => "normalised",
        Status::Computed => "computed",
        Status::Quoted => "quoted",
        Status::NotFound => "not_found",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Index;
    use proptest::prelude::*;
    use serde_json::json;

    /// Returns the text of the page's left side without its tags.
    fn plain(page: &str) -> String {
        let text = page.split("<pre dir=\"auto\">").nth(1).unwrap().split("</pre>").next().unwrap();
        let (mut all, mut tag) = (String::new(), false);
        for c in text.chars() {
            match c {
                '<' => tag = true,
                '>' => tag = false,
                c if !tag => all.push(c),
                _ => {}
            }
        }
        all
    }

    proptest! {
        #[test]
        fn the_page_has_the_whole_text_and_no_tag_of_it(
            words in prop::collection::vec("[a-z<>&\"'é漢]{1,4}|[0-9]{1,3}", 1..30),
            picked in prop::collection::vec(0_usize..30, 0..8),
            cut in 0_usize..3,
        ) {
            let text = words.join(" ");
            let mut values: Vec<Value> = picked.iter().map(|at| words[at % words.len()].clone().into()).collect();
            values.push(words.iter().take(cut + 1).cloned().collect::<Vec<_>>().join(" ").into());
            let value = json!({ "<i>": values });
            let evidence = Index::new(&text).evidence(&value, None);
            let page = page("<x>", &text, &value, &evidence);
            prop_assert_eq!(plain(&page), html_text(&text));
            prop_assert!(!page.contains("<i>") && !page.contains("<x>"));
            for (number, it) in evidence.iter().enumerate() {
                let targets = page.matches(&format!("id=\"v{number}\"")).count();
                prop_assert_eq!(targets, usize::from(!it.spans.is_empty()));
            }
        }
    }
}
