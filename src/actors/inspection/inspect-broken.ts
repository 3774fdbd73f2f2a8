import { BROKEN, type InspectedActor } from '../../model/inspection.ts';

const WHY =
  'its state machine threw repeatedly and was stopped until it is rebuilt; the log has the error';

/** Contains no record and no deadline. */
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
