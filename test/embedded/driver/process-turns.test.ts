import { expect } from 'chai';
import { ProcessesFull } from '../../../src/contracts/processes.ts';
import { EmbeddedProcesses } from '../../../src/embedded/driver/processes.ts';
import { anOrder } from '../../support/builders/instance-orders.ts';
import { TestClock } from '../../support/fakes/test-clock.ts';
import { rejection } from '../../support/harness/rejection.ts';

const { id: ID } = anOrder().record;

/** A spawner that starts nothing until it is told to. */
const aSpawner = () => {
  const started: string[] = [];
  const settle: (() => void)[] = [];
  const clock = new TestClock(0);
  const processes = new EmbeddedProcesses({
    spawner: {
      hold: (_id, { tenant }) => {
        started.push(tenant);
        return new Promise((_, reject) => {
          settle.push(() => reject(new Error('it is not there')));
        });
      },
    },
    isRunning: () => true,
    folder: '/nowhere',
    clock,
    processors: 4,
  });
  const start = (tenant: string): Promise<unknown> =>
    processes.start(ID, { processId: 'p', tenant, argv: ['true'], stdin: false });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  return { started, settle, clock, start, turn };
};

describe('process starts on one machine', () => {
  it('of one tenant use half of the processors, and leave the rest to others', async () => {
    const { started, settle, start, turn } = aSpawner();
    const all = ['noisy', 'noisy', 'noisy', 'noisy', 'quiet'].map((tenant) =>
      start(tenant).catch(() => undefined),
    );
    await turn();
    expect(started).to.deep.equal(['noisy', 'noisy', 'quiet']);

    settle[0]?.();
    await turn();
    expect(started.slice(3)).to.deep.equal(['noisy']);
    while (settle.length > 0) {
      settle.shift()?.();
      await turn();
    }
    await Promise.all(all);
    expect(started).to.have.length(5);
  });

  it('that take long let the next one start after 50 ms', async () => {
    const { started, clock, start, turn } = aSpawner();
    for (let n = 0; n < 6; n += 1) void start('hung').catch(() => undefined);
    for (const count of [2, 4, 6]) {
      await turn();
      expect(started).to.have.length(count);
      clock.advance(50);
    }
  });

  it('are refused if 1,024 of their tenant wait', async () => {
    const { start } = aSpawner();
    for (let n = 0; n < 1_026; n += 1) void start('noisy').catch(() => undefined);
    const refused = await rejection(start('noisy'));
    expect(refused).to.be.instanceOf(ProcessesFull).and.to.include({ of: 'tenant' });
  });
});
