import { Duplex } from 'node:stream';
import { expect } from 'chai';
import { ProcessesNotProvided } from '../../src/contracts/processes.ts';
import { OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import { InstanceProcesses } from '../../src/k8s/processes/instance-processes.ts';
import type { AgentWay } from '../../src/contracts/agent/process-calls.ts';
import { NoAgent } from '../../src/k8s/streams/no-agent.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const frame = (type: string, payload: Buffer): Buffer => {
  const head = Buffer.from(`${type}....`);
  head.writeUInt32BE(payload.length, 1);
  return Buffer.concat([head, payload]);
};
const NOTHING = Buffer.alloc(0);

/** A record of a process with this number. */
const pieceOf = (number: number): Buffer => {
  const told = `p-${number}\0{"argv":["a"],"startedAt":${number}}`;
  const record = Buffer.concat([Buffer.from('R'), Buffer.alloc(16), Buffer.from(told)]);
  const head = Buffer.alloc(13, 0);
  head.write('r');
  head.writeUInt32BE(record.length, 9);
  return Buffer.concat([head, record]);
};

/** A way to what answers in a sandbox, which says this and no more, or fails. */
const wayTo = (said: Buffer | Error): AgentWay =>
  Object.assign(
    new Duplex({
      read: () => {},
      write(_chunk, _encoding, done) {
        if (said instanceof Error) return done(said);
        this.push(said);
        done();
      },
    }),
    { hold: () => undefined },
  );

describe('calls about processes of a Pod', () => {
  const clock = new TestClock();
  let ways: AgentWay[] = [];
  let open = (): AgentWay => wayTo(NOTHING);
  let tries = 0;
  const processes = new InstanceProcesses({
    enter: (_id, go) => go([{ namespace: 'n', name: 'p', uid: 'u', container: 'c' }]),
    openAgent: () => {
      tries += 1;
      const way = open();
      ways.push(way);
      return Promise.resolve(way);
    },
    pause: () => Promise.resolve(true),
    clock,
  });
  beforeEach(() => {
    ways = [];
    tries = 0;
  });

  it('store no more of a list than the maximum number of processes', async () => {
    const pieces = Buffer.concat(Array.from({ length: 5_000 }, (_, number) => pieceOf(number)));
    open = () =>
      wayTo(
        Buffer.concat([Buffer.of(0), frame('H', NOTHING), frame('D', pieces), frame('E', NOTHING)]),
      );
    expect(await processes.list('i')).to.have.length(256);
  });

  it('are repeated without an answer, at most six times', async () => {
    open = () => {
      const way = wayTo(Buffer.of(0));
      way.once('data', () => way.destroy());
      return way;
    };
    expect(await rejection(processes.list('i'))).to.be.instanceOf(OutcomeUnknown);
    expect(tries).to.equal(6);
  });

  it('fail if a sandbox is silent for 25 s', async () => {
    open = () => wayTo(Buffer.of(0));
    const given = rejection(processes.list('i'));
    await eventually(() => ways.length === 1, 'it is asked');
    clock.advance(25_000);
    expect(await given).to.be.instanceOf(OutcomeUnknown);
    expect(ways[0]?.destroyed).to.equal(true);
  });

  it('report that a Pod has no agent', async () => {
    open = () => wayTo(new NoAgent());
    expect(await rejection(processes.list('i'))).to.be.instanceOf(ProcessesNotProvided);
  });
});
