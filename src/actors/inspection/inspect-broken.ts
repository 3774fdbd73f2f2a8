import { BROKEN, type InspectedActor } from '../../model/inspection.ts';

const WHY =
  'its state machine threw repeatedly and was stopped until it is rebuilt; the log has the error';

/**
 * For people, what has no actor because that threw again and again. It knows no record, and waits
 * for nothing.
 */
export const inspectBroken = (
  named: Pick<InspectedActor, 'kind' | 'key' | 'name' | 'shardKey'>,
  since: number,
): InspectedActor => ({
  ...named,
  state: BROKEN,
  since,
  context: {},
  deadlines: [],
  why: [WHY],
  record: {},
});
