import { setImmediate as nextTurn } from 'node:timers/promises';

/** Has the event loop go round, so that what waits in sockets is read. */
export const turns = async (count = 4): Promise<void> => {
  for (let turn = 0; turn < count; turn += 1) await nextTurn();
};
