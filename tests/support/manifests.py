"""Manifests and the mistakes that people make in them, for all who must refuse them."""

JOB = """\
apiVersion: rollout-operator.dev/v1alpha1
kind: RolloutJob
metadata:
  name: demo
spec:
  handler: math
  tasks:
    uri: tasks.jsonl
  samplesPerTask: 2
  llm:
    poolRef:
      name: tiny
    sampling:
      temperature: "0.7"
  sandbox:
    image: python
"""
POOL = """\
apiVersion: rollout-operator.dev/v1alpha1
kind: LLMPool
metadata:
  name: tiny
spec:
  model: tiny
  launch:
    modelPath: tiny
"""

# One row per mistake: what to replace in JOB, by what, and the one line that must come out.
MISTAKES = {
    "unknown field": (
        "samplesPerTask: 2",
        "samplePerTask: 2",
        "9: RolloutJob/demo: spec.samplePerTask: unknown field; did you mean `samplesPerTask`? "
        "valid fields: activeDeadlineSeconds, agent, groups, handler, llm, managedBy, placement, "
        "poolRef, preRunningDeadlineSeconds, priority, retry, samplesPerTask, sandbox, stages, "
        "suspended, tasks, ttlSecondsAfterFinished",
    ),
    "Python's spelling of a field": (
        "sampling:",
        "max_turns: 3\n    sampling:",
        "13: RolloutJob/demo: spec.llm.max_turns: unknown field; did you mean `maxTurns`? "
        "valid fields: maxContextTokens, maxTurns, poolRef, sampling",
    ),
    "unknown field unlike any other": (
        "name: tiny",
        "name: tiny\n      zzz: 1",
        "13: RolloutJob/demo: spec.llm.poolRef.zzz: unknown field; valid fields: name",
    ),
    "wrong type": (
        "samplesPerTask: 2",
        "samplesPerTask: 'x'",
        "9: RolloutJob/demo: spec.samplesPerTask: must be an integer, got the string 'x'",
    ),
    "a quoted number": (
        "samplesPerTask: 2",
        'samplesPerTask: "2"',
        "9: RolloutJob/demo: spec.samplesPerTask: must be an integer, got the string '2'",
    ),
    "a fraction for an integer": (
        "samplesPerTask: 2",
        "samplesPerTask: 2.5",
        "9: RolloutJob/demo: spec.samplesPerTask: must be an integer, got the number 2.5",
    ),
    "unquoted decimal": (
        'temperature: "0.7"',
        "temperature: 0.7",
        "14: RolloutJob/demo: spec.llm.sampling.temperature: "
        'must be a string, got the number 0.7; write "0.7"',
    ),
    "a decimal that is none": (
        'temperature: "0.7"',
        "temperature: warm",
        "14: RolloutJob/demo: spec.llm.sampling.temperature: must be a number that is not "
        "negative, written as a string, such as \"0.7\", got 'warm'",
    ),
    "a fraction above 1": (
        'temperature: "0.7"',
        'topP: "1.5"',
        "14: RolloutJob/demo: spec.llm.sampling.topP: must be above 0 and at most 1, "
        "written as a string, such as \"0.95\", got '1.5'",
    ),
    "a word that YAML reads as a boolean": (
        "image: python",
        "image: on",
        "16: RolloutJob/demo: spec.sandbox.image: "
        "must be a string, got the boolean true; put it in quotes",
    ),
    "two task sources": (
        "uri: tasks.jsonl",
        "uri: tasks.jsonl\n    inline: [{id: a, instruction: b}]",
        "7: RolloutJob/demo: spec.tasks: must set exactly one of `inline` and `uri`",
    ),
    "no task source": (
        "    uri: tasks.jsonl",
        "    {}",
        "7: RolloutJob/demo: spec.tasks: must set exactly one of `inline` and `uri`",
    ),
    "the same task twice": (
        "uri: tasks.jsonl",
        "inline: [{id: a, instruction: b}, {id: a, instruction: c}]",
        "8: RolloutJob/demo: spec.tasks.inline: must not repeat `id` 'a'",
    ),
    "a bad task in a list": (
        "uri: tasks.jsonl",
        "inline:\n      - id: a\n        instruction: b\n      - id: c\n        instruction: ''",
        "12: RolloutJob/demo: spec.tasks.inline[1].instruction: must not be empty",
    ),
    "zero samples": (
        "samplesPerTask: 2",
        "samplesPerTask: 0",
        "9: RolloutJob/demo: spec.samplesPerTask: must be greater than or equal to 1, got 0",
    ),
    "more usable samples than samples": (
        "samplesPerTask: 2",
        "groups: {minimumUsableSamples: 3}",
        "5: RolloutJob/demo: spec: `groups.minimumUsableSamples` must be less than or equal to "
        "`samplesPerTask`",
    ),
    "a value outside its set": (
        "image: python",
        "image: python\n    network: nome",
        "17: RolloutJob/demo: spec.sandbox.network: must be `none`, got the string 'nome'",
    ),
    "a tool that does not exist": (
        "handler: math",
        "handler: math\n  agent: {tools: [ipyton]}",
        "7: RolloutJob/demo: spec.agent.tools[0]: must be one of `bash`, `ipython`, "
        "got the string 'ipyton'; did you mean `ipython`?",
    ),
    "a missing field": (
        "      name: tiny",
        "      {}",
        "11: RolloutJob/demo: spec.llm.poolRef.name: must be set",
    ),
    "a scalar for a mapping": (
        "    poolRef:\n      name: tiny",
        "    poolRef: tiny",
        "11: RolloutJob/demo: spec.llm.poolRef: must be a mapping, got the string 'tiny'",
    ),
    "nothing for a mapping": (
        "    image: python",
        "",
        "15: RolloutJob/demo: spec.sandbox: must be a mapping, got nothing (null)",
    ),
    "a bad name": (
        "name: demo",
        "name: Demo_1",
        "4: RolloutJob/Demo_1: metadata.name: must consist of lower-case letters, digits and `-`, "
        "without a `-` at either end, got 'Demo_1'",
    ),
    "misspelt metadata": (
        "name: demo",
        "name: demo\n  lables: {a: b}",
        "5: RolloutJob/demo: metadata.lables: unknown field; did you mean `labels`? valid fields: "
        "annotations, creationTimestamp, deletionGracePeriodSeconds, deletionTimestamp, "
        "finalizers, generateName, generation, labels, managedFields, name, namespace, "
        "ownerReferences, resourceVersion, selfLink, uid",
    ),
    "a label that Kubernetes refuses": (
        "name: demo",
        "name: demo\n  labels: {owner: a team}",
        "5: RolloutJob/demo: metadata.labels.owner: must consist of letters, digits and `- _ .`, "
        "with a letter or digit at either end, got 'a team'",
    ),
    "a label's key that Kubernetes refuses": (
        "name: demo",
        "name: demo\n  labels:\n    example.org/a/b: c",
        "6: RolloutJob/demo: metadata.labels[example.org/a/b]: the key of a label must be a name "
        "of at most 63 letters, digits and `- _ .`, with or without a `domain/` in front, "
        "got 'example.org/a/b'",
    ),
    "a key twice": (
        "handler: math",
        "handler: math\n  handler: code",
        "7: RolloutJob/demo: spec.handler: must be set once; it is also on line 6",
    ),
    "a number that JSON lacks": (
        "uri: tasks.jsonl",
        "inline: [{id: a, instruction: b, metadata: {x: .inf}}]",
        "8: RolloutJob/demo: spec.tasks.inline[0].metadata.x: must be a finite number, got inf",
    ),
    "unknown kind": (
        "kind: RolloutJob",
        "kind: RolloutJobs",
        "2: RolloutJobs/demo: kind: must be one of `RolloutJob`, `RolloutPool`, `LLMPool`, "
        "got the string 'RolloutJobs'; did you mean `RolloutJob`?",
    ),
    "a kind that people do not write": (
        "kind: RolloutJob",
        "kind: Pod",
        "2: Pod/demo: kind: must be one of `RolloutJob`, `RolloutPool`, `LLMPool`, "
        "got the string 'Pod'",
    ),
    "another version": (
        "dev/v1alpha1",
        "dev/v1",
        "1: RolloutJob/demo: apiVersion: must be `rollout-operator.dev/v1alpha1`, "
        "got the string 'rollout-operator.dev/v1'",
    ),
    "no kind": (
        "kind: RolloutJob\n",
        "",
        "1: kind: must be set to RolloutJob or RolloutPool or LLMPool",
    ),
}

POOL_MISTAKES = {
    "two kinds of backends": (
        "  model: tiny\n",
        "  model: tiny\n  endpoints: [{url: 'http://x'}]\n",
        "5: LLMPool/tiny: spec: must set exactly one of `endpoints` and `launch`",
    ),
    "endpoints without a tokenizer": (
        "  launch:\n    modelPath: tiny\n",
        "  endpoints: [{url: 'http://x'}]\n",
        "5: LLMPool/tiny: spec: must set `tokenizer` when `endpoints` is set: a directory with "
        "tokenizer.json",
    ),
    "a URL without a scheme": (
        "  launch:\n    modelPath: tiny\n",
        "  tokenizer: tiny\n  endpoints: [{url: 'gpu:8000'}]\n",
        "8: LLMPool/tiny: spec.endpoints[0].url: must start with `http://`, `https://` or "
        "`unix:///`, got 'gpu:8000'",
    ),
}
