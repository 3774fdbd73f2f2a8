import { expect } from 'chai';
import { NotSent, refusedBy } from '../../src/k8s/api/api-errors.ts';
import { untilAnswering } from '../../src/k8s/api/until-answering.ts';
import { silentLog } from '../../src/contracts/log.ts';
import { rejection } from '../support/harness/rejection.ts';

const SERVER = 'https://10.0.0.1:6443';
const AWAY = new NotSent('connect ECONNREFUSED');

/** Waits for an API server that answers as given, the last answer for ever. */
const waiting = (...answers: readonly (Error | undefined)[]) => {
  const said: string[] = [];
  const problems: string[] = [];
  const stop = new AbortController();
  let asked = 0;
  const get = async (): Promise<unknown> => {
    const answer = answers[Math.min(asked, answers.length - 1)];
    asked += 1;
    if (answer) throw answer;
    return {};
  };
  const note = (_: unknown, event: string): void => {
    said.push(event);
  };
  const done = untilAnswering({
    api: { get },
    server: SERVER,
    log: { ...silentLog, warn: note, info: note },
    stopped: stop.signal,
    pauses: { firstMs: 0, mostMs: 0 },
    waits: (problem) => {
      problems.push(problem);
      if (problems.length === 20) stop.abort(new Error('told to stop'));
    },
  });
  return { done, said, problems, stop };
};

describe('a start without an API server', () => {
  it('waits for as long as it can not be reached or is overloaded, says so once, and then that it answers', async () => {
    const { done, said, problems } = waiting(
      AWAY,
      AWAY,
      refusedBy(503, '', undefined),
      refusedBy(429, '', undefined),
      undefined,
    );

    await done;

    expect(said).to.deep.equal(['waits for the API server', 'the API server answers']);
    expect(problems).to.have.length(4);
    expect(problems[0]).to.include(SERVER).and.include('ECONNREFUSED');
  });

  it('ends when it is told to', async () => {
    const { done } = waiting(AWAY);

    expect((await rejection(done)).message).to.equal('told to stop');
  });

  it('ends where the API server refuses the daemon, and says what it said', async () => {
    const { done, problems } = waiting(
      AWAY,
      refusedBy(401, '{"message":"Unauthorized"}', undefined),
    );

    expect((await rejection(done)).message)
      .to.include(SERVER)
      .and.include('Unauthorized');
    expect(problems).to.have.length(1);
  });

  it('says nothing where it answers at once', async () => {
    const { done, said, problems } = waiting(undefined);

    await done;

    expect([...said, ...problems]).to.deep.equal([]);
  });
});
