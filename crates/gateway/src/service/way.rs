//! The way of a request that has to be understood: who makes its calls, and what they send.

use crate::ask::Want;
use crate::options::Extra;

/// The way of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Targets get what was read of the request: from a run, or in a dialogue with tools.
    Read,
    /// A run makes the calls, and targets of the protocol get the request as the client wrote it.
    Run,
    /// The request passes on as the client wrote it, and each turn of the model is judged.
    Native,
    /// A refusal: no target answers it as it is asked.
    Refused,
}

/// The kind of answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Json,
    Call,
    Tools,
}

impl Kind {
    pub(super) const fn of(want: &Want) -> Self {
        match want {
            Want::Text => Self::Text,
            Want::Json { .. } => Self::Json,
            Want::Call(_) => Self::Call,
            Want::Tools { .. } => Self::Tools,
        }
    }
}

/// The part of the request that is not in what was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    Nothing,
    /// Members without which there is an answer.
    Members,
    /// Members that are its subject, such as a document.
    Subject,
}

/// The facts that the way of a request depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    pub(super) kind: Kind,
    pub(super) extra: Extra,
    pub(super) lost: Lost,
    /// Whether a contract is named.
    pub(super) is_named: bool,
    /// Whether the request asks for several answers.
    pub(super) has_several: bool,
    /// Whether runs make calls in its protocol.
    pub(super) has_wire: bool,
    /// Whether its first target has its protocol.
    pub(super) has_target: bool,
}

impl Facts {
    pub(super) fn way(self) -> Way {
        let is_document = self.kind == Kind::Json || (self.kind == Kind::Text && self.is_named);
        // Several answers of one call are cheaper than several runs, whose calls have one each.
        let is_of_run = self.is_named || !self.has_several || self.extra >= Extra::Evidence;
        let runs = is_document && self.has_wire && is_of_run;
        let is_contract = self.kind != Kind::Text || self.is_named;
        match (self.lost, self.kind) {
            (Lost::Subject, _) if !self.has_target => Way::Refused,
            _ if !self.has_target => Way::Read,
            (Lost::Subject, _) if self.extra == Extra::Eager => Way::Refused,
            (Lost::Subject, _) if runs => Way::Run,
            (Lost::Subject, Kind::Text) if self.is_named => Way::Refused,
            (Lost::Subject, _) if is_contract && self.extra >= Extra::Changes => Way::Refused,
            (Lost::Subject, _) | (_, Kind::Tools) => Way::Native,
            (Lost::Members, _) if runs && self.extra < Extra::Eager => Way::Run,
            (Lost::Members, Kind::Json | Kind::Call) if !runs && self.extra == Extra::Nothing => Way::Native,
            _ => Way::Read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All requests there are.
    fn all() -> Vec<Facts> {
        let mut all = Vec::new();
        for kind in [Kind::Text, Kind::Json, Kind::Call, Kind::Tools] {
            for extra in [Extra::Nothing, Extra::Evidence, Extra::Changes, Extra::Eager] {
                for lost in [Lost::Nothing, Lost::Members, Lost::Subject] {
                    for bits in 0..16 {
                        let [is_named, has_several, has_wire, has_target] =
                            [1, 2, 4, 8].map(|bit| bits & bit != 0);
                        all.push(Facts { kind, extra, lost, is_named, has_several, has_wire, has_target });
                    }
                }
            }
        }
        all
    }

    #[test]
    fn every_request_has_a_way_that_answers_all_of_it() {
        for facts in all() {
            let Facts { kind, extra, lost, is_named, has_several, has_wire, has_target } = facts;
            let way = facts.way();
            let is_document = kind == Kind::Json || (kind == Kind::Text && is_named);
            if !has_target {
                let other = if lost == Lost::Subject { Way::Refused } else { Way::Read };
                assert_eq!(way, other, "nobody speaks its protocol: {facts:?}");
                continue;
            }
            match way {
                Way::Run => assert!(is_document && has_wire && extra < Extra::Eager, "{facts:?}"),
                Way::Native => {
                    assert!(!(kind == Kind::Text && is_named), "nothing would judge the text: {facts:?}");
                    let is_ours = lost == Lost::Subject || kind != Kind::Tools;
                    let is_judged = kind != Kind::Text;
                    assert!(
                        !(is_ours && is_judged && extra >= Extra::Changes),
                        "no value changes: {facts:?}"
                    );
                }
                Way::Read => {
                    assert_ne!(lost, Lost::Subject, "its subject is lost: {facts:?}");
                    assert_ne!(kind, Kind::Tools, "a turn has parts that no run has: {facts:?}");
                    // What a header asks for comes before members that have no place in the answer.
                    let has_reason =
                        extra >= Extra::Evidence || !is_document && kind != Kind::Call || !has_wire;
                    assert!(lost == Lost::Nothing || has_reason, "{facts:?}");
                }
                Way::Refused => {
                    assert_eq!(lost, Lost::Subject, "{facts:?}");
                    assert!(extra >= Extra::Changes || (is_named && !has_wire), "{facts:?}");
                }
            }
            if has_several && !is_named && extra == Extra::Nothing {
                assert_ne!(way, Way::Run, "one call has them all: {facts:?}");
            }
        }
    }
}
