use formwork_core::Time;
use formwork_ledger::{Error, KeyError, KeyRole, Ledger, NewKey, Settings};

use crate::given::{NOW, ledger};

#[test]
fn a_key_is_found_by_its_secret_until_it_ends() {
    let ledger = ledger();
    assert!(!ledger.has_keys(NOW).unwrap());
    let new = NewKey {
        budget: Some(5_000_000),
        rpm: Some(60),
        models: vec!["a".to_owned(), "b, \"c\"".to_owned()],
        expires: Some(Time(NOW.0 + 1000)),
        role: KeyRole::Admin,
        ..NewKey::new("alice")
    };
    let (key, secret) = ledger.add_key(new.clone(), NOW).unwrap();
    assert!(ledger.has_keys(NOW).unwrap());
    assert_eq!(ledger.find_key(secret.reveal(), NOW), Ok(key.clone()));
    assert_eq!((key.budget, key.rpm, &key.models, key.role), (new.budget, new.rpm, &new.models, new.role));
    assert!(key.allows("a") && !key.allows("c"));
    assert_eq!(ledger.find_key(secret.reveal(), Time(NOW.0 + 999)), Ok(key));
    assert_eq!(
        ledger.find_key(secret.reveal(), Time(NOW.0 + 1000)),
        Err(KeyError::Expired("alice".to_owned()))
    );
    let secret = secret.reveal();
    for wrong in
        ["", "fw_", &secret[..secret.len() - 1], &format!("{secret}0"), &secret.to_uppercase(), "sk-123"]
    {
        assert_eq!(ledger.find_key(wrong, NOW), Err(KeyError::Unknown), "{wrong}");
    }
}

#[test]
fn revoking_and_rotating_work_at_once_although_keys_are_remembered() {
    let ledger = ledger();
    let (_, first) = ledger.add_key(NewKey::new("alice"), NOW).unwrap();
    ledger.find_key(first.reveal(), NOW).unwrap();
    let (rotated, second) = ledger.rotate_key("alice").unwrap();
    assert_eq!(ledger.find_key(first.reveal(), NOW), Err(KeyError::Unknown));
    assert_eq!(ledger.find_key(second.reveal(), NOW), Ok(rotated));
    let revoked = ledger.revoke_key("alice", NOW).unwrap();
    assert_eq!(ledger.find_key(second.reveal(), NOW), Err(KeyError::Revoked("alice".to_owned())));
    assert_eq!(
        ledger.revoke_key("alice", Time(NOW.0 + 5)).unwrap().revoked,
        revoked.revoked,
        "the first time counts"
    );
    assert!(matches!(ledger.rotate_key("alice"), Err(Error::Invalid(_))));
}

#[test]
fn another_handle_on_the_file_notices_within_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let (one, two) = (
        Ledger::open(&path, Settings::default()).unwrap(),
        Ledger::open(&path, Settings::default()).unwrap(),
    );
    assert!(!two.has_keys(NOW).unwrap());
    let (_, secret) = one.add_key(NewKey::new("alice"), NOW).unwrap();
    assert!(two.has_keys(Time(NOW.0 + 1000)).unwrap());
    two.find_key(secret.reveal(), NOW).unwrap();
    one.revoke_key("alice", NOW).unwrap();
    assert_eq!(two.find_key(secret.reveal(), Time(NOW.0 + 1000)), Err(KeyError::Revoked("alice".to_owned())));
}

#[test]
fn secrets_are_random_and_stand_nowhere_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.db");
    let ledger = Ledger::open(&path, Settings::default()).unwrap();
    let secrets: Vec<_> =
        (0..20).map(|nth| ledger.add_key(NewKey::new(format!("k{nth}")), NOW).unwrap().1).collect();
    ledger.close();
    drop(ledger);
    let bytes: Vec<u8> = std::fs::read_dir(folder.path())
        .unwrap()
        .flat_map(|file| std::fs::read(file.unwrap().path()).unwrap())
        .collect();
    for (nth, secret) in secrets.iter().enumerate() {
        let text = secret.reveal();
        assert_eq!(text.len(), 3 + 64);
        assert!(
            !bytes.windows(text.len()).any(|window| window == text.as_bytes()),
            "a secret is in the file"
        );
        assert!(!format!("{secret:?}").contains(&text[12..]), "a secret is in its debug output");
        assert!(secrets[..nth].iter().all(|other| other != secret));
    }
}

#[test]
fn what_cannot_be_a_key_is_refused_with_its_reason() {
    let ledger = ledger();
    ledger.add_key(NewKey::new("alice"), NOW).unwrap();
    let long = "x".repeat(65);
    for (new, says) in [
        (NewKey::new("alice"), "already"),
        (NewKey::new(""), "1 to 64"),
        (NewKey::new(" x"), "spaces"),
        (NewKey::new("a\nb"), "control"),
        (NewKey::new(long), "1 to 64"),
        (NewKey { rpm: Some(0), ..NewKey::new("b") }, "minute"),
        (NewKey { models: vec![String::new()], ..NewKey::new("b") }, "empty"),
        (NewKey { budget: Some(u64::MAX), ..NewKey::new("b") }, "at most 1000000.00"),
    ] {
        let error = ledger.add_key(new.clone(), NOW).unwrap_err().to_string();
        assert!(error.contains(says), "{new:?}: {error}");
    }
    for error in [ledger.revoke_key("bob", NOW).unwrap_err(), ledger.rotate_key("bob").unwrap_err()] {
        assert_eq!(error.to_string(), "the ledger has no key named `bob`; its keys are `alice`");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn keys_of_a_file_that_was_deleted_or_replaced_are_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let (path, moved) = (folder.path().join("ledger.db"), folder.path().join("moved.db"));
    let ledger = Ledger::open(&path, Settings::default()).unwrap();
    let (_, secret) = ledger.add_key(NewKey::new("k"), NOW).unwrap();
    let later = |seconds: u64| Time(NOW.0 + seconds * 1000);
    assert!(ledger.find_key(secret.reveal(), later(1)).is_ok());
    std::fs::rename(&path, &moved).unwrap();
    for seconds in [3, 5] {
        let error = ledger.find_key(secret.reveal(), later(seconds)).unwrap_err();
        assert!(matches!(error, KeyError::Ledger(Error::Replaced { .. })), "{error}");
        assert!(error.to_string().ends_with("ledger.db was deleted or replaced: start the service again"));
        assert!(matches!(ledger.probe().await, Err(Error::Replaced { .. })));
        assert!(matches!(ledger.key("k"), Err(Error::Replaced { .. })));
        // The second round has another file at the path.
        std::fs::write(&path, "").unwrap();
    }
    std::fs::rename(&moved, &path).unwrap();
    assert!(ledger.find_key(secret.reveal(), later(7)).is_ok() && ledger.probe().await.is_ok());
}
