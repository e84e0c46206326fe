//! Limits of money are upper bounds: the bill of a provider never exceeds the reserved cost.

use std::sync::Arc;

use formwork_core::*;
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::*;

/// The billing of a provider, within its documentation.
#[derive(Debug, Clone)]
struct Billing {
    reply: Reply,
    /// The bytes per token of text, from 1: each byte of rare scripts is a token.
    bytes: usize,
    /// The tokens of each picture.
    picture: usize,
    /// The tokens around each message.
    around: usize,
    /// The share of the token limit that the answer uses, in per cent, and the share of reasoning in it.
    used: u64,
    reasoned: u64,
}

impl Billing {
    /// Returns the usage of a call. A limit of money always comes with a token limit.
    fn bill(&self, call: &Call) -> Usage {
        let part = |part: &Part| match part {
            Part::Text { text } => text.len().div_ceil(self.bytes),
            Part::Image { .. } => self.picture,
            other => unreachable!("{other:?}"),
        };
        let message = |message: &Arc<Message>| self.around + message.parts.iter().map(part).sum::<usize>();
        let schema = call.schema().map_or(0, |schema| schema.to_string().len().div_ceil(self.bytes));
        let limit = u64::from(call.max_tokens.unwrap());
        let output = limit * self.used / 100;
        let input = (call.messages.iter().map(message).sum::<usize>() + schema) as u64;
        Usage::new(input, output).with_reasoning(output * self.reasoned / 100)
    }

    /// Returns the event of a call. A fault in the middle of a stream is billed like an answer.
    fn event(&self, id: CallId, call: &Call) -> Event {
        let mut event = self.reply.event(id, call);
        match &mut event {
            Event::Answered { completion, .. } => completion.usage = self.bill(call),
            Event::Failed { usage, .. } => *usage = self.bill(call),
            _ => {}
        }
        event
    }
}

fn any_billing() -> impl Strategy<Value = Billing> {
    let replies = [
        Reply::Says(GOOD),
        Reply::Says(BAD_SUM),
        Reply::Says(BAD_RANGE),
        Reply::Says("no JSON here"),
        Reply::Ends("{\"score\": 700", Finish::Length),
        Reply::Ends("I can't.", Finish::Refused),
        Reply::Fails(FaultKind::Overloaded),
        Reply::Fails(FaultKind::Timeout),
        Reply::Fails(FaultKind::SchemaRefused),
    ];
    (select(replies.to_vec()), 1usize..5, 85usize..5_500, 3usize..12, 0u64..=100, 0u64..=100).prop_map(
        |(reply, bytes, picture, around, used, reasoned)| Billing {
            reply,
            bytes,
            picture,
            around,
            used,
            reasoned,
        },
    )
}

fn any_policy() -> impl Strategy<Value = Policy> {
    (1u32..5, select(vec![Patching::Never, Patching::Attempt, Patching::Within(2)])).prop_map(
        |(attempts, patching)| {
            Policy::new(attempts)
                .with_patching(patching)
                .with_stop_on_repeat(false)
                .with_backoff(Backoff::none())
        },
    )
}

/// Returns a target that costs this number of millionths of a dollar for each token.
fn priced(name: &str, micro_usd: u64) -> Target {
    target(name).with_price(Price::new(micro_usd * 1_000_000, micro_usd * 1_000_000))
}

const CUT: Reply = Reply::Ends("{\"score\": 700", Finish::Length);

#[test]
fn an_answer_that_a_limit_of_the_run_cuts_off_is_no_attempt_and_doubles_the_limit_up_to_that_of_the_target() {
    let budget = Cost { tokens: u64::MAX, micro_usd: Some(1_000_000) };
    let own = 1_024 + (schema().to_string().len() + "Score this wallet.".len()) as u32 / 2;
    for (output_tokens, configured, is_limited, script, limits, attempts) in [
        (10_000, None, true, vec![CUT, CUT, Reply::Says(GOOD)], vec![own, 2 * own, 4 * own], vec![1, 1, 1]),
        // At the limit of the target, the truncation is an attempt.
        (2_000, None, true, vec![CUT, CUT, Reply::Says(GOOD)], vec![own, 2_000, 2_000], vec![1, 1, 2]),
        // So it is at the caller's limit.
        (10_000, Some(50), true, vec![CUT, Reply::Says(GOOD)], vec![50, 100], vec![1, 2]),
        (
            10_000,
            Some(2_000),
            true,
            vec![CUT, CUT, Reply::Says(GOOD)],
            vec![own, 2_000, 4_000],
            vec![1, 1, 2],
        ),
        // Without a budget there is no limit of the run.
        (10_000, Some(2_000), false, vec![CUT, Reply::Says(GOOD)], vec![2_000, 4_000], vec![1, 2]),
        // Four times the longest answer: the first one took the whole limit.
        (90_000, None, true, vec![Reply::Says(BAD_SUM), Reply::Says(GOOD)], vec![own, 4 * own], vec![1, 2]),
    ] {
        let capabilities = Capabilities::new(Enforcement::Schema).with_output_tokens(output_tokens);
        let target =
            Target::new("one", capabilities).with_mode(Arc::new(AsIs("strict", Enforcement::Schema)));
        let price = Price::new(1_000_000, 1_000_000);
        let policy = Policy::new(3).with_patching(Patching::Never);
        let mut builder = Plan::new(contract(), vec![target.with_price(price)]).with_policy(policy);
        if is_limited {
            builder = builder.with_budget(budget);
        }
        if let Some(tokens) = configured {
            builder = builder.with_max_tokens(tokens);
        }
        let driven = drive(&builder.build().unwrap(), input(), &script);
        let sent: Vec<_> = driven.calls.iter().map(|(_, _, call)| call.max_tokens.unwrap()).collect();
        let counted: Vec<_> = driven.run.ledger().iter().map(|call| call.attempt).collect();
        assert_eq!((sent, counted), (limits, attempts), "{output_tokens}, {configured:?}, {is_limited}");
        let observed = driven.run.observations().count();
        assert!(
            observed == 0 || configured.is_some() || output_tokens == 2_000,
            "a limit of the run shows nothing"
        );
        assert!(driven.run.finish().is_ok());
    }
}

/// A server that does not answer in time was sent the prompt; one that was not reached was not.
#[test]
fn a_call_that_is_late_is_charged_for_its_prompt() {
    for (kind, connection, is_charged) in [
        (FaultKind::Timeout, None, true),
        (FaultKind::Timeout, Some(Connection::Late), false),
        (FaultKind::Unreachable, Some(Connection::Failed), false),
        (FaultKind::Overloaded, None, false),
    ] {
        let policy = Policy::new(1).with_backoff(Backoff::none());
        let plan = Plan::new(contract(), vec![priced("one", 1)]).with_policy(policy).build().unwrap();
        let mut run = Run::new(&plan, input());
        let Ok(Step::Call { id, call, .. }) = run.step(&plan, Time(1_000)) else { panic!("no call") };
        let mut fault = Fault::new(kind, "no answer");
        fault.connection = connection;
        let prompt = Usage::estimate(&call, 0);
        run.on(&plan, Time(2_000), Event::failed(id, fault, Usage::default())).unwrap();
        let expected = if is_charged { prompt } else { Usage::default() };
        assert!(prompt.input_tokens > 0 && prompt.estimated);
        assert_eq!(run.ledger()[0].usage, expected, "{kind:?}, {connection:?}");
    }
}

/// The part of an answer that had arrived was paid for, although the caller does not wait for the rest.
#[test]
fn a_run_that_is_cancelled_in_the_middle_of_an_answer_is_charged_for_what_came() {
    let plan = Plan::new(contract(), vec![priced("one", 1)]).build().unwrap();
    for text in ["", "{\"score\": 700, \"reasoning\": \"a long story\""] {
        let mut run = Run::new(&plan, input());
        let Ok(Step::Call { id, call, .. }) = run.step(&plan, Time(1_000)) else { panic!("no call") };
        run.on(&plan, Time(2_000), Event::dropped(id, Completion::new(text))).unwrap();
        let entry = &run.ledger()[0];
        assert_eq!(
            (&entry.verdict, entry.usage),
            (&CallResult::Cancelled, Usage::estimate(&call, text.len()))
        );
        assert_eq!(run.finish().unwrap_err().kind(), ErrorKind::Cancelled);
    }
}

#[test]
fn a_target_that_a_budget_refused_is_called_later_and_one_that_failed_is_not() {
    let wrong = || Reply::Says(BAD_SUM);
    let auth = || Reply::Fails(FaultKind::Auth);
    let (dear, cheap) = (priced("dear", 3), priced("cheap", 1));
    let policy = || {
        Policy::new(3).with_patching(Patching::Never).with_stop_on_repeat(false).with_attempts_per_target(1)
    };
    for (targets, script, expected, kind) in [
        // The refused target is called after the cheap one has failed.
        ([&dear, &cheap], vec![Reply::Denies, auth(), Reply::Says(GOOD)], vec![0, 1, 0], None),
        // The cheap one is asked again, because the target after it is refused.
        ([&cheap, &dear], vec![wrong(), Reply::Denies, Reply::Says(GOOD)], vec![0, 1, 0], None),
        (
            [&cheap, &dear],
            vec![wrong(), Reply::Denies, wrong(), Reply::Denies, Reply::Says(GOOD)],
            vec![0, 1, 0, 1, 0],
            None,
        ),
        // A target whose calls failed is not called again, whoever is refused.
        ([&cheap, &dear], vec![auth(), Reply::Denies], vec![0, 1], Some(ErrorKind::Budget)),
        ([&dear, &cheap], vec![auth(), Reply::Denies], vec![0, 1], Some(ErrorKind::Budget)),
        ([&dear, &cheap], vec![Reply::Denies, Reply::Denies], vec![0, 1], Some(ErrorKind::Budget)),
        ([&dear, &cheap], vec![Reply::Denies, auth(), auth()], vec![0, 1, 0], Some(ErrorKind::Unavailable)),
    ] {
        let targets: Vec<Target> = targets.into_iter().cloned().collect();
        let shared = Cost { tokens: u64::MAX, micro_usd: Some(1_000_000) };
        let plan =
            Plan::new(contract(), targets).with_policy(policy()).with_shared_budget(shared).build().unwrap();
        let driven = drive(&plan, input(), &script);
        let called: Vec<_> = driven.calls.iter().map(|(_, target, _)| *target).collect();
        assert_eq!(called, expected, "{script:?}");
        assert_eq!(driven.run.finish().err().map(|error| error.kind()), kind, "{script:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_bill_is_never_more_than_was_reserved(
        policy in any_policy(),
        script in prop::collection::vec(any_billing(), 1..8),
        prices in prop::collection::vec((0u64..20_000_000, 0u64..80_000_000), 1..4),
        text in "\\PC{0,400}",
        pictures in 0usize..4,
        limit in prop::option::of(1u32..4_000),
        budget in 1u64..2_000_000,
    ) {
        let targets: Vec<_> = prices
            .iter()
            .enumerate()
            .map(|(nth, &(input, output))| target(&format!("t{nth}")).with_price(Price::new(input, output)))
            .collect();
        let budget = Cost { tokens: u64::MAX, micro_usd: Some(budget) };
        let builder = Plan::new(contract(), targets).with_policy(policy).with_budget(budget);
        let builder = match limit { Some(limit) => builder.with_max_tokens(limit), None => builder };
        let plan = builder.build().unwrap();
        let mut message = Message::user(text);
        for _ in 0..pictures {
            message.parts.push(Part::Image { media_type: "image/png".into(), data: "AAAA".into() });
        }

        let (mut run, mut now, mut calls) = (Run::new(&plan, Input::new([message])), Time(0), 0);
        let mut billed = 0;
        loop {
            match run.step(&plan, now).unwrap() {
                Step::Wait { until, .. } => now = until,
                Step::Done => break,
                Step::Call { id, target, call, reserve, .. } => {
                    let billing = &script[calls % script.len()];
                    let usage = billing.bill(&call);
                    let (input, output) = prices[target];
                    let price = usage.input_tokens * input + usage.output_tokens * output;
                    prop_assert!(price <= reserve.micro_usd.unwrap() * 1_000_000, "{:?}: {:?}", usage, reserve);
                    billed += price;
                    calls += 1;
                    run.on(&plan, now, billing.event(id, &call)).unwrap();
                    let booked = run.ledger().iter().map(|call| call.cost.micro_usd.unwrap()).sum::<u64>();
                    prop_assert!(billed <= booked * 1_000_000, "what was billed is booked, faults included");
                }
                _ => unreachable!("this plan has no checks outside of the run"),
            }
        }
        prop_assert!(billed <= budget.micro_usd.unwrap() * 1_000_000);
    }
}
