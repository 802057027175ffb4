//! A graph that cannot run is refused with an explanation, before any thread starts.

use cosched_pipeline::{
    Buffer, Cause, Flow, Graph, GraphError, Options, Path, Pipeline, Port, Resource, Settings, Stage, StageId,
};

fn stage(name: &str) -> Stage {
    Stage::blocking(name, Resource::Io, |_| Ok(()))
}

fn body(name: &str) -> Stage {
    Stage::body(name, Resource::Io, |_: &mut Port| Ok(()))
}

fn replicated(name: &str, incarnations: usize) -> Stage {
    Stage::replicated(name, incarnations, Resource::Compute, |_| |_: &mut Buffer| Ok(Flow::Continue))
}

/// A path of three buffers through stages.
fn graph(stages: Vec<Stage>) -> (Graph, Vec<StageId>) {
    let mut graph = Graph::new("g");
    let ids = graph.stages(stages);
    graph.path(Path::new("p").buffers(3, 64).through(ids.clone()));
    (graph, ids)
}

#[track_caller]
fn refused(graph: Graph, why: &GraphError, text: &str) {
    assert_eq!(graph.check().as_ref(), Err(why));
    // Starting it fails with the same message.
    let failure = graph.run(&Options::default()).unwrap_err();
    assert!(matches!(&failure.cause, Cause::Graph(error) if error == why), "{failure}");
    assert!(failure.to_string().contains(text), "'{text}' is not in: {failure}");
    assert!(failure.to_string().starts_with("pipeline 'g': "), "{failure}");
    assert!(failure.report.stages.is_empty());
}

#[test]
fn empty_graphs_paths_and_pools() {
    refused(Graph::new("g"), &GraphError::Empty("g".into()), "add one with Graph::path");
    refused(Pipeline::new("g").buffers(3, 64).into_graph(), &GraphError::Empty("g".into()), "has no path");
    let mut through_nothing = Graph::new("g");
    through_nothing.path(Path::new("p").buffers(3, 64));
    refused(through_nothing, &GraphError::NoStages("p".into()), "Path::through");
    let pool = |buffers, size_bytes| Pipeline::new("g").buffers(buffers, size_bytes).stage(stage("s")).into_graph();
    refused(pool(0, 64), &GraphError::NoBuffers("g".into()), "nothing could move");
    refused(pool(3, 0), &GraphError::NoBytes("g".into()), "0 bytes");
    let max = 1 << 20;
    let too_many = GraphError::TooManyBuffers { path: "g".into(), buffers: max + 1, max };
    refused(pool(max + 1, 64), &too_many, "larger ones");
    assert_eq!(pool(usize::MAX, usize::MAX).memory_bytes(), u64::MAX);
}

#[test]
fn memory_that_is_not_there() {
    let line = Pipeline::new("g").buffers(3, 1 << 60).stage(stage("s"));
    let failure = line.run(&Options::default()).unwrap_err();
    assert!(matches!(failure.cause, Cause::Graph(GraphError::Memory { buffers: 3, .. })), "{failure}");
    assert!(failure.to_string().contains("cannot be allocated"), "{failure}");
}

#[test]
fn stages_without_a_place_or_a_name() {
    let (mut lonely, _) = graph(vec![stage("a")]);
    lonely.stage(stage("b"));
    refused(lonely, &GraphError::Unused("b".into()), "no predecessor and no successor");
    refused(graph(vec![stage("a"), stage("a")]).0, &GraphError::SameName("a".into()), "each needs a name of its own");
    let (_, ids) = graph(vec![stage("a"), stage("b"), stage("c")]);
    let (mut other, _) = graph(vec![stage("a")]);
    other.path(Path::new("q").buffers(3, 64).through([ids[2]]));
    let foreign = GraphError::Foreign { path: "q".into(), number: 2, stages: 1 };
    refused(other, &foreign, "the graph they were added to");
}

#[test]
fn cycles() {
    let mut cyclic = Graph::new("g");
    let (a, b) = (cyclic.stage(stage("a")), cyclic.stage(stage("b")));
    cyclic.path(Path::new("p").buffers(3, 64).through([a, b, a]));
    let cycle = GraphError::Cycle { path: "p".into(), stage: "a".into() };
    refused(cyclic, &cycle, "go back to the pool by themselves");
}

#[test]
fn sources_that_cannot_be() {
    let several = graph(vec![replicated("a", 2), stage("b")]).0;
    refused(several, &GraphError::ReplicatedSource("a".into()), "replicate the next");
    let (mut mixed, ids) = graph(vec![stage("a"), stage("b")]);
    mixed.path(Path::new("q").buffers(3, 64).through([ids[1]]));
    refused(mixed, &GraphError::MixedSource("b".into()), "only a Body");
}

#[test]
fn incarnations_that_cannot_be() {
    let none = graph(vec![stage("a"), replicated("b", 0)]).0;
    refused(none, &GraphError::NoIncarnations("b".into()), "would never be processed");
    let one = graph(vec![stage("a"), stage("b").replicable(2)]).0;
    refused(one, &GraphError::NotReplicable("b".into()), "replicated(name, 1");
    assert_eq!(graph(vec![stage("a"), replicated("b", 1).replicable(2)]).0.check(), Ok(()));
}

#[test]
fn threads_that_cannot_be_shared() {
    let shared = |why| GraphError::SharedThread { stage: "b".into(), thread: "t".into(), why };
    let with = |b: Stage| graph(vec![stage("a").on_thread("t"), b.on_thread("t")]).0;
    let why = "it accepts and conveys by itself, so the thread would never come to the others";
    refused(with(body("b")), &shared(why), why);
    let why = "it has several incarnations, which could not run at once";
    refused(with(replicated("b", 2)), &shared(why), why);
    let why = "it would do 0 buffers in its turn";
    refused(with(stage("b").repeat(0)), &shared(why), why);
    let nice = Settings { nice: Some(5), ..Settings::default() };
    let differ = graph(vec![stage("a").on_thread("t").with(nice.clone()), stage("b").on_thread("t")]).0;
    assert_eq!(differ.check(), Ok(()), "who asks for nothing takes what the other asks for");
    let other = Settings { nice: Some(6), ..Settings::default() };
    let differ = graph(vec![stage("a").on_thread("t").with(nice), stage("b").on_thread("t").with(other)]).0;
    assert!(matches!(differ.check(), Err(GraphError::SharedThread { .. })));
}

#[test]
fn turns_that_would_never_come() {
    let long = graph(vec![stage("a").on_thread("t").repeat(4), stage("b").on_thread("t")]).0;
    let needs = GraphError::RepeatNeedsBuffers { thread: "t".into(), repeat: 4, path: "p".into(), buffers: 3 };
    refused(long, &needs, "has only 3");
    let alone = graph(vec![stage("a").repeat(2), stage("b")]).0;
    refused(alone, &GraphError::RepeatAlone("a".into()), "name it with on_thread");
}

#[test]
fn bodies_that_would_wait_for_ever() {
    let held = graph(vec![stage("a"), body("b").holds(1), body("c").holds(2)]).0;
    let all = GraphError::HoldsAll { path: "p".into(), held: 3, buffers: 3 };
    refused(held, &all, "give it at least 4");
    assert_eq!(graph(vec![stage("a"), body("b").holds(2)]).0.check(), Ok(()));
}
