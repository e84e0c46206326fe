//! Judges with a known defect, one for each row of the report: the report has to show the defect.

use formwork_core::{Capabilities, Completion, Enforcement, FaultKind};
use formwork_extract::Backend;
use formwork_review::{Pair, Votes};
use formwork_testkit::Scripted;
use serde_json::json;

use super::consistency::{Case, measure};
use super::pairs::{Row, compare};
use super::patient;
use super::tally::Tally;
use crate::scripted::scripted;

/// The rows of the report, in its order.
const COMPLY: usize = 0;
const RETRY: usize = 1;
const SAME: usize = 2;
const RIGHT: usize = 3;
const AGREES: usize = 4;
const PREFERS: usize = 5;

/// A judge with a defect, the rows that miss because of it, and a part of the remark on it.
pub(super) struct Planted {
    pub(super) name: &'static str,
    missed: &'static [usize],
    remark: &'static str,
    /// Returns the answer to a question whose right answer is given; the number counts the earlier questions.
    answer: fn(&Question, usize) -> String,
}

/// A question to a judge.
struct Question {
    /// The right answer: `pass`, `fail`, `first` or `second`.
    right: &'static str,
    is_second_attempt: bool,
}

impl Question {
    fn is_pair(&self) -> bool {
        ["first", "second"].contains(&self.right)
    }

    fn wrong(&self) -> &'static str {
        match self.right {
            "pass" => "fail",
            "fail" => "pass",
            "first" => "second",
            _ => "first",
        }
    }

    fn answer(&self, choice: &str, confidence: u8) -> String {
        let name = if self.is_pair() { "better" } else { "verdict" };
        json!({"reasoning": "Planted.", name: choice, "confidence": confidence}).to_string()
    }
}

pub(super) const PLANTED: [Planted; 10] = [
    Planted {
        name: "always right",
        missed: &[],
        remark: "",
        answer: |question, _| question.answer(question.right, 90),
    },
    Planted {
        name: "ends its texts with a comma, which is repaired",
        missed: &[COMPLY],
        remark: "",
        answer: |question, _| question.answer(question.right, 90).replace('}', ",}"),
    },
    Planted {
        name: "answers in prose, and right when asked again",
        missed: &[COMPLY, RETRY],
        remark: "",
        answer: |question, _| match question.is_second_attempt {
            false => "It is fine.".to_owned(),
            true => question.answer(question.right, 90),
        },
    },
    Planted {
        name: "wrong about each fourth verdict, by chance",
        missed: &[SAME],
        remark: "",
        answer: |question, nth| {
            let is_wrong = !question.is_pair() && nth % 4 == 1;
            question.answer(if is_wrong { question.wrong() } else { question.right }, 90)
        },
    },
    Planted {
        name: "always says pass",
        missed: &[RIGHT],
        remark: "the judge said `pass` 200 times of 200",
        answer: |question, _| question.answer(if question.is_pair() { question.right } else { "pass" }, 90),
    },
    Planted {
        name: "always says fail",
        missed: &[RIGHT],
        remark: "the judge said `fail` 200 times of 200",
        answer: |question, _| question.answer(if question.is_pair() { question.right } else { "fail" }, 90),
    },
    Planted {
        name: "decides nothing",
        missed: &[SAME, RIGHT, AGREES, PREFERS],
        remark: "the judge decided none of 200 criteria",
        answer: |question, _| question.answer(question.right, 49),
    },
    Planted {
        name: "prefers the worse text",
        missed: &[AGREES],
        remark: "",
        answer: |question, _| {
            question.answer(if question.is_pair() { question.wrong() } else { question.right }, 90)
        },
    },
    Planted {
        name: "prefers the text shown first",
        missed: &[AGREES, PREFERS],
        remark: "the judge preferred the text shown first 40 times of 40",
        answer: |question, _| question.answer(if question.is_pair() { "first" } else { question.right }, 90),
    },
    Planted {
        name: "is not reachable",
        missed: &[COMPLY, RETRY, SAME, RIGHT, AGREES, PREFERS],
        remark: "the judge decided none of 200 criteria",
        answer: |_, _| String::new(),
    },
];

impl Planted {
    fn backend(&self) -> Backend {
        if self.missed.len() == 6 {
            return Backend::from(std::sync::Arc::new(Scripted::new([FaultKind::Auth])));
        }
        let capabilities = Capabilities::new(Enforcement::None).with_dialect("prompt").with_temperature();
        let (answer, asked) = (self.answer, std::sync::atomic::AtomicUsize::new(0));
        Backend::from(scripted(capabilities, move |call| {
            let asked = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let question =
                call.messages.iter().map(|message| message.text()).find(|text| text.contains("\n---\n"));
            let question = question.unwrap_or_default();
            let right = match question.split_once('\n').unwrap_or_default().0 {
                criterion if criterion.contains("holds") => "pass",
                criterion if criterion.contains("fails") => "fail",
                _ if question.find("The good text.") < question.find("The bad text.") => "first",
                _ => "second",
            };
            let is_second_attempt = call.messages.len() > 3 || asked_again(call);
            Completion::new(answer(&Question { right, is_second_attempt }, asked))
        }))
    }

    /// Measures the judge, with twenty criteria, ten seeds and twenty pairs.
    pub(super) async fn tally(&self) -> Result<Tally, String> {
        let (mut tally, judge) = (Tally::of(self.name), [self.backend()]);
        measure(&mut tally, &judge, &[Case::scripted()], Votes { extra: 0, near: 0 }, 10).await?;
        for nth in 0..20 {
            let mut texts = ["The good text.", "The bad text."].map(str::to_owned);
            let is_turned = nth % 2 == 1;
            if is_turned {
                texts.reverse();
            }
            let ([a, b], better) = (texts, if is_turned { "b" } else { "a" });
            let pair = Pair { task: "Write well.".into(), a, b };
            compare(&mut tally, patient(judge.iter().cloned()), &Row { pair, better: better.into() }).await?;
        }
        Ok(tally)
    }

    /// Returns the reason why the report does not show the defect, if it does not.
    pub(super) fn unseen(&self, tally: &Tally) -> Option<String> {
        let rows = tally.rows();
        let missed: Vec<usize> = (0..rows.len()).filter(|row| rows[*row].met == Some(false)).collect();
        let names =
            |rows_of: &[usize]| rows_of.iter().map(|row| rows[*row].metric).collect::<Vec<_>>().join(", ");
        if missed != self.missed {
            let (expected, found) = (names(self.missed), names(&missed));
            return Some(format!("the judge that {}: misses {found:?}, expected {expected:?}", self.name));
        }
        let remarks = tally.remarks();
        let is_said = match self.remark {
            "" => remarks.is_empty(),
            remark => remarks.iter().any(|one| one.contains(remark)),
        };
        (!is_said).then(|| format!("the judge that {}: the remarks are {remarks:?}", self.name))
    }
}

/// Returns whether a call has the violations of an earlier answer.
fn asked_again(call: &formwork_core::Call) -> bool {
    call.messages.iter().any(|message| message.text().contains("failed validation"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::runtime;

    #[test]
    fn each_row_of_the_report_is_missed_by_a_judge_with_its_defect() {
        let runtime = runtime().unwrap();
        let mut missed = [false; 6];
        for planted in PLANTED {
            let tally = runtime.block_on(planted.tally()).unwrap();
            assert_eq!(planted.unseen(&tally), None, "{tally}");
            assert_eq!(tally.is_missed(), !planted.missed.is_empty());
            planted.missed.iter().for_each(|row| missed[*row] = true);
            let text = tally.to_string();
            // Each measured share has its number of measurements, and the prompts are named.
            assert!(text.matches(" of ").count() >= 6, "{text}");
            assert!(planted.missed.len() == 6 || text.contains("prompts: pair "), "{text}");
        }
        assert_eq!(missed, [true; 6], "each row has a judge that misses it");
        assert!(Tally::default().is_missed(), "nothing was measured");
    }

    #[test]
    fn a_comparison_of_judges_says_which_is_better_only_if_the_interval_does() {
        let runtime = runtime().unwrap();
        let tally = |name: &str| {
            let planted = PLANTED.iter().find(|planted| planted.name == name).unwrap();
            runtime.block_on(planted.tally()).unwrap()
        };
        let [right, passing, worse] =
            ["always right", "always says pass", "prefers the worse text"].map(tally);
        let text = right.beside(&passing);
        assert!(
            text.contains("right about 20 criteria: +50.0 points") && text.contains(": better\n"),
            "{text}"
        );
        assert!(
            text.ends_with(
                "right about 20 pairs: +0.0 points, 95 % interval +0.0 to +0.0: no difference is shown"
            ),
            "{text}"
        );
        assert!(worse.beside(&right).ends_with("-100.0 points, 95 % interval -100.0 to -100.0: worse"));
    }
}
