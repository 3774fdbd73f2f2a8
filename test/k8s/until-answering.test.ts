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
  it('waits while the server is unreachable or overloaded, and logs begin and end once', async () => {
    const { done, said, problems } = waiting(
      AWAY,
      AWAY,
      refusedBy(503, '', undefined),
      refusedBy(429, '', undefined),
      undefined,
    );

    await done;

    expect(said).to.deep.equal(['waiting-for-api-server', 'api-server-answers']);
    expect(problems).to.have.length(4);
    expect(problems[0]).to.include(SERVER).and.include('ECONNREFUSED');
  });

  it('ends when it is cancelled', async () => {
    const { done } = waiting(AWAY);

    expect((await rejection(done)).message).to.equal('told to stop');
  });

  it("ends with the server's message if the server refuses the daemon", async () => {
    const { done, problems } = waiting(
      AWAY,
      refusedBy(401, '{"message":"Unauthorized"}', undefined),
    );

    expect((await rejection(done)).message)
      .to.include(SERVER)
      .and.include('Unauthorized');
    expect(problems).to.have.length(1);
  });

  it('logs nothing if the server answers at once', async () => {
    const { done, said, problems } = waiting(undefined);

    await done;

    expect([...said, ...problems]).to.deep.equal([]);
  });
});
