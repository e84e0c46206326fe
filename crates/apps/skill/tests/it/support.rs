use std::sync::Arc;

use formwork_skill::{NamedBackends, Skill, SkillRunnerService};
use formwork_testkit::{Reply, Scripted};

/// Parses a valid skill.
pub(crate) fn skill(text: &str) -> Skill {
    Skill::parse("s.yaml", text).unwrap_or_else(|error| panic!("{error:#}"))
}

/// Returns a runner of these skills, and its model.
pub(crate) fn runner(
    skills: &[&str],
    replies: impl IntoIterator<Item = impl Into<Reply>>,
) -> (SkillRunnerService, Arc<Scripted>) {
    let model = Arc::new(Scripted::new(replies));
    let runner = SkillRunnerService::new(NamedBackends::new([model.clone().into()]));
    (skills.iter().fold(runner, |runner, text| runner.with_skill(skill(text))), model)
}

/// Generates a person, and reviews the age by a rule.
pub(crate) const PERSON: &str = r#"
name: person
description: Makes up a person.
template_type: LLM_JSON_GENERATION
inputs:
  country: {type: string}
  job: {type: string, optional: true}
system: You make up people.
prompt: |
  Make up a person of {{ country }}{% if job %} who is a {{ job }}{% endif %}.
output:
  schema:
    type: object
    properties: {name: {type: string}, age: {type: integer, minimum: 0, maximum: 150}}
    required: [name, age]
"#;

/// The same skill with a rubric.
pub(crate) fn reviewed(retry_once: bool) -> String {
    format!(
        "{PERSON}retry_once: {retry_once}
rubric:
  name: person
  criteria:
    - id: young
      description: The person is at most 30.
      schema: {{properties: {{age: {{maximum: 30}}}}}}
      fix: Take somebody younger.
"
    )
}

pub(crate) const OLD: &str = r#"{"name": "Maria", "age": 90}"#;
pub(crate) const YOUNG: &str = r#"{"name": "Maria", "age": 20}"#;

/// Reviews a reply.
pub(crate) const REPLY: &str = r#"
name: review-reply
description: Reviews a reply to a customer.
template_type: LLM_REVIEW
inputs:
  reply: {type: string}
  price_list: {type: array, optional: true}
subject: reply
prompt: Answer the customer.
rubric:
  name: reply
  criteria:
    - {id: polite, description: The reply is polite.}
    - {id: prices, description: The prices are right., needs: [price_list]}
"#;
