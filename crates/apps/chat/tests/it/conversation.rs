use formwork_chat::Conversation;
use formwork_core::Role;

use crate::support::{client, good, model};

#[tokio::test]
async fn what_was_answered_is_remembered() {
    let answer = good().to_string();
    let model = model([answer.as_str(), "no", &answer, "no", "no", &answer]);
    let client = client(&model).build().unwrap();
    let mut conversation = client.conversation();
    for question in ["one", "two", "three", "four"] {
        let answered = conversation.ask(question).await.answer().is_some();
        assert_eq!(answered, question != "three");
    }
    let history: Vec<_> = conversation.history().map(|message| message.text()).collect();
    assert_eq!(history, ["one", &answer, "two", &answer, "four", &answer]);
    let last = model.calls().pop().unwrap();
    let roles: Vec<_> = last.messages.iter().map(|message| message.role).collect();
    use Role::{Assistant, System, User};
    assert_eq!(roles, [System, User, Assistant, User, Assistant, User]);
    conversation.clear();
    assert_eq!(conversation.history().count(), 0);
}

#[tokio::test]
async fn only_the_last_turns_are_remembered() {
    let model = model([good().to_string().as_str()]);
    let mut conversation = client(&model).build().unwrap().conversation();
    for n in 0..30 {
        assert!(conversation.ask(n.to_string()).await.answer().is_some());
    }
    let most = 2 * Conversation::<formwork_chat::StructuredAnswerLite>::MAX_TURNS;
    assert_eq!(conversation.history().count(), most);
    assert_eq!(conversation.history().next().unwrap().text(), "10");
}
