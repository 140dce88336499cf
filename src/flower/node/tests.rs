//! What a node does with answers that are lost, refused, or not those of a SuperLink.

mod superlink;

use std::collections::HashMap;

use self::superlink::{Said, SuperLink, said};
use super::*;
use crate::array::{Array, Values};
use crate::flower::fleet::Security;
use crate::flower::keys::NodeKey;
use crate::flower::messages::{Nothing, ObjectRequest, PullObjectReply, PushObjectReply, PushReply, PushRequest};
use crate::flower::wire::Message as _;
use crate::protocol::{Message, Wire};
use crate::remote::{Arrays, Content, ask_who, open, seal};

#[test]
fn a_reply_goes_back_to_where_its_message_came_from_and_ends_with_it() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    let asked = Metadata {
        run_id: 7,
        message_id: "m".into(),
        src_node_id: 1,
        dst_node_id: 5,
        group_id: "3".into(),
        ttl: 100.0,
        message_type: "train".into(),
        created_at: now - 40.0,
        src_task_id: Some(8),
        ..Metadata::default()
    };
    let reply = reply_to(asked);
    assert_eq!((reply.src_node_id, reply.dst_node_id, reply.src_task_id, reply.dst_task_id), (5, 1, None, Some(8)));
    assert_eq!((&reply.message_id[..], &reply.reply_to_message_id[..]), ("", "m"));
    assert_eq!((reply.run_id, &reply.group_id[..], &reply.message_type[..]), (7, "3", "train"));
    let end = reply.created_at + reply.ttl;
    assert!((end - (now + 60.0)).abs() < 1e-3, "{end}");
}

#[test]
fn a_node_whose_answers_were_lost_tries_again_and_one_that_is_refused_does_not() {
    let (away, unknown) = (|| Refusal::Away("away".into()), || Refusal::Unknown("unknown".into()));
    let precondition = || Refusal::Precondition("412".into());
    let may_pass = |found: Result<u64, Refusal>| matches!(found, Err(Refusal::Precondition(_)));
    for may_be_there in [true, false] {
        assert_eq!(entered(may_be_there, Ok(()), Ok(7)), Ok(7));
        assert_eq!(entered(may_be_there, Ok(()), Err(away())), Err(away()));
        assert_eq!(entered(may_be_there, Err(unknown()), Err(precondition())), Err(unknown()));
        // The key is registered by an attempt whose answer, or whose activation, was lost.
        assert_eq!(entered(may_be_there, Err(precondition()), Ok(7)), Ok(7));
        assert_eq!(entered(may_be_there, Err(precondition()), Err(away())), Err(away()));
    }
    assert!(may_pass(entered(true, Err(precondition()), Err(precondition()))));
    // The operator's key is not registered, or in use.
    assert!(may_pass(entered(true, Ok(()), Err(precondition()))));
    assert_eq!(entered(false, Ok(()), Err(precondition())), Err(Refusal::Refused("412".into())));
}

#[test]
fn the_key_of_a_first_attempt_that_a_superlink_with_registered_keys_refuses_is_refused_in_its_words() {
    let (registered, activated) = ("All SuperNodes must be registered via the CLI", "Failed to activate SuperNode");
    let refused = (Err(Refusal::Precondition(registered.into())), Err(Refusal::Precondition(activated.into())));
    assert_eq!(entered(false, refused.0, refused.1), Err(Refusal::Refused(registered.into())));
}

#[test]
fn an_answer_that_is_no_superlinks_does_not_end_a_node_that_has_joined() {
    let is_strange = |refusal: &Refusal| matches!(refusal, Refusal::Refused(_));
    let calls = Cell::new(0);
    let strange_once = || {
        calls.set(calls.get() + 1);
        if calls.get() == 1 { Err(Refusal::Refused("a page".into())) } else { Ok(calls.get()) }
    };
    assert_eq!(steadfast(strange_once, None, is_strange, Duration::from_millis(100)), Ok(2));
    let strange = || Err::<(), _>(Refusal::Refused("a page".into()));
    assert_eq!(steadfast(strange, None, is_strange, Duration::ZERO), strange());
    // What says that the node is not known is an answer.
    let unknown = || Err::<(), _>(Refusal::Unknown("who".into()));
    assert_eq!(steadfast(unknown, None, is_strange, Duration::from_secs(1)), unknown());
}

#[test]
fn the_time_for_answers_that_are_no_superlinks_begins_anew_after_an_absence() {
    let calls = Cell::new(0);
    // The second page comes after the absence, which lasts longer than pages are taken for one.
    let answers = || {
        calls.set(calls.get() + 1);
        match calls.get() {
            1 | 3 => Err(Refusal::Refused("a page".into())),
            2 => Err(Refusal::Away("away".into())),
            calls => Ok(calls),
        }
    };
    let is_strange = |refusal: &Refusal| matches!(refusal, Refusal::Refused(_));
    assert_eq!(steadfast(answers, None, is_strange, Duration::from_millis(300)), Ok(4));
}

#[test]
fn a_call_is_repeated_while_the_superlink_is_away_and_not_when_it_refuses() {
    let calls = Cell::new(0);
    let away_once = || {
        calls.set(calls.get() + 1);
        if calls.get() == 1 { Err(Refusal::Away("away".into())) } else { Ok(calls.get()) }
    };
    assert_eq!(patient(away_once, None), Ok(2));
    let refused = || {
        calls.set(calls.get() + 1);
        Err::<(), _>(Refusal::Refused("no".into()))
    };
    assert_eq!(patient(refused, None), Err(Refusal::Refused("no".into())));
    assert_eq!(calls.get(), 3);
    let never = || Err::<(), _>(Refusal::Away("away".into()));
    let error = patient(never, Some(Duration::from_millis(1))).unwrap_err();
    assert_eq!(error.reason(), "away (1 attempts in 0 s)");
}

/// A node of this SuperLink.
fn node_of(superlink: &SuperLink) -> Node {
    let fleet = Fleet::new(&superlink.address, Security::None, NodeKey::random().unwrap()).unwrap();
    Node::new(fleet, false, Limits::of(1 << 20))
}

fn sent(node: &Node, records: &Records) -> Result<usize, Refusal> {
    node.send(Metadata::default(), Ok(records), Duration::ZERO)
}

/// Records without arrays.
fn small() -> Records {
    Records::of(&ask_who().unwrap()).unwrap().0
}

/// An answer with an array of 1.6 MB.
fn large() -> Parcel {
    let array = Array { shape: vec![400_000], values: Values::F32(vec![0.5; 400_000]) };
    let arrays = Arrays::of(&Message::default().with_array("particles", array), Wire::Full);
    seal(7, 42, Content::Ready { visited: 1 }, &arrays).unwrap()
}

/// The answer to an announcement of which all objects are wanted.
fn wants_all(request: &[u8]) -> Said {
    let announced = PushRequest::decoded(request).unwrap();
    let wanted = listed(&announced.trees[0]).unwrap().into_iter().map(String::from).collect();
    said(&PushReply { wanted, session: "session".into() })
}

/// All objects of the last reply that was announced have been sent, in this session.
fn assert_all_came(superlink: &SuperLink, session: &str) {
    let announced = superlink.requests::<PushRequest>("push-messages").pop().unwrap();
    let expected: HashSet<&str> = listed(&announced.trees[0]).unwrap().into_iter().collect();
    let pushed = superlink.requests::<PushObjectRequest>("push-object");
    let in_session = pushed.iter().filter(|object| object.session == session);
    assert_eq!(in_session.map(|object| object.object_id.as_str()).collect::<HashSet<_>>(), expected);
}

#[test]
fn an_object_that_an_attempt_stored_whose_answer_was_lost_is_not_refused() {
    let mut objects = 0;
    let superlink = SuperLink::that(move |call, request| {
        if call == "push-messages" {
            return wants_all(request);
        }
        objects += 1;
        // The first answer is lost, and the second is that of an object that is stored already.
        if objects == 1 { None } else { said(&PushObjectReply { stored: objects > 2 }) }
    });
    sent(&node_of(&superlink), &small()).unwrap();
    assert_all_came(&superlink, "session");
}

#[test]
fn an_object_that_is_not_stored_at_the_first_attempt_is_refused() {
    let superlink = SuperLink::that(|call, request| match call {
        "push-messages" => wants_all(request),
        _ => said(&PushObjectReply { stored: false }),
    });
    let refused = sent(&node_of(&superlink), &small()).unwrap_err();
    assert!(refused.reason().contains("does not keep an object"), "{refused:?}");
    assert_eq!(superlink.requests::<PushObjectRequest>("push-object").len(), 1);
}

#[test]
fn a_reply_that_the_superlink_does_not_take_is_not_sent() {
    let superlink = SuperLink::that(|_, _| said(&PushReply { session: "session".into(), ..PushReply::default() }));
    let refused = Refusal::Refused("the SuperLink takes no answer to this message any more".into());
    assert_eq!(sent(&node_of(&superlink), &small()), Err(refused));
    assert_eq!(superlink.names(), ["push-messages"]);
}

#[test]
fn objects_come_without_a_session_where_the_answer_that_names_it_was_lost() {
    for is_awaited in [true, false] {
        let mut announcements = 0;
        let superlink = SuperLink::that(move |call, _| {
            if call == "push-object" {
                return said(&PushObjectReply { stored: is_awaited });
            }
            announcements += 1;
            if announcements == 1 { None } else { said(&PushReply { session: "empty".into(), ..PushReply::default() }) }
        });
        let sent = sent(&node_of(&superlink), &small());
        assert_eq!(sent.is_ok(), is_awaited, "{sent:?}");
        assert_all_came(&superlink, "");
    }
}

#[test]
fn an_answer_that_does_not_come_through_is_a_failure_that_the_server_can_take() {
    let question = seal(7, 42, Content::Describe {}, &Arrays::default()).unwrap();
    let (packed, envelope, tree) = Packed::reply(Metadata::default(), Ok(&Records::of(&question).unwrap().0));
    let objects: HashMap<String, Vec<u8>> = packed.contents.into_iter().collect();
    let superlink = SuperLink::that(move |call, request| match call {
        _ if request.len() > 1 << 20 => Some((413, Vec::new())),
        "pull-object" => {
            let ObjectRequest { object_id, .. } = ObjectRequest::decoded(request).unwrap();
            said(&PullObjectReply { found: true, available: true, content: objects[&object_id].clone() })
        }
        "push-messages" => wants_all(request),
        "push-object" => said(&PushObjectReply { stored: true }),
        _ => said(&Nothing {}),
    });
    node_of(&superlink).attend(envelope, &tree, &mut |_: Parcel| large()).unwrap();
    // The answer is offered before anything is announced, and only the failure is announced.
    let names: Vec<String> = superlink.names().into_iter().filter(|name| name.starts_with("push")).collect();
    assert_eq!(names[..2], ["push-object", "push-messages"]);
    let announced = superlink.requests::<PushRequest>("push-messages");
    assert_eq!(announced.len(), 1);
    let mut received = Received::default();
    for object in superlink.requests::<PushObjectRequest>("push-object") {
        assert_eq!(object.session == NO_SESSION, object.content.len() > 1 << 20);
        received.keep(&object.object_id, object.content).unwrap();
    }
    let failure = received.records(&announced[0].trees[0].object_id, Limits::of(0)).unwrap();
    let opened = open(failure.parcel().unwrap()).unwrap();
    assert_eq!(opened.number, 42);
    let Content::Failure { reason } = &opened.content else { panic!("{:?}", opened.content) };
    assert!(reason.contains("takes no request of") && reason.contains("at least 6 MiB"), "{reason}");
}

#[test]
fn an_object_is_offered_first_only_where_none_of_its_size_has_come_through() {
    let superlink = SuperLink::that(|call, request| match call {
        "push-messages" => wants_all(request),
        _ => said(&PushObjectReply { stored: true }),
    });
    let (node, small, large) = (node_of(&superlink), small(), Records::of(&large()).unwrap().0);
    for (records, offers) in [(&small, 0), (&large, 1), (&large, 1)] {
        sent(&node, records).unwrap();
        let pushed = superlink.requests::<PushObjectRequest>("push-object");
        assert_eq!(pushed.iter().filter(|object| object.session == NO_SESSION).count(), offers);
    }
}
