/** What the generated pages say above their charts. */

export const sandboxProse = `
# The sandbox machine

One instance, from its launch to its end; [src/machines/sandbox-machine.ts](../../src/machines/sandbox-machine.ts). The
machine decides and does nothing: its actions note what became known and ask for effects (\`launch\`, \`claim\`, \`retire\`,
\`release\`, \`look\`, \`close\`), which the supervisor carries out and answers with an event.

- **Claimed at most once.** CLAIM is legal in \`idle.available\` alone. The claim is one conditional write; \`running\` is
  entered by the word that it landed, or by a record that shows it.
- **Never taken away.** \`running\` is left by END, by its own expiry, by an end that is noted on the record, or by its death.
- **Never stuck.** Every state that waits has a deadline, which repeats what may be repeated and looks at what may not.
  \`idle\` waits for nothing but the moment from which its start counts as a good one; \`running\` waits for its timeouts, if it has any.
- **Never forgotten.** END is legal in every state. What was told to end ends, also where its claim lands meanwhile.
`;

export const poolProse = `
# The pool machine

One pool; [src/machines/pool-machine.ts](../../src/machines/pool-machine.ts). Three regions side by side: its lifecycle, how
its size compares with \`replicas\`, and the breaker for failing starts. It counts its instances as they move, and asks for
effects (\`launch\`, \`trim\`, \`end-running\`, \`save-breaker\`, \`remove\`) only while this replica leads the pool.

- **Never above \`replicas\`.** What is present, launches under way included, comes to \`replicas\` and not beyond.
- **Paced.** Launches take tokens from a bucket; so many may be starting at once. After failures in a row there are none
  for a pause that doubles, then one, until that one has started.
- **Running sandboxes are never trimmed.** They are ended by a deletion with \`force\` alone.
- **Deletion turns neither back nor away.** The record goes once nothing unclaimed is left (with \`force\`: nothing at all).
`;
