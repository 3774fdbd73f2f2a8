import { expect } from 'chai';
import { MemoryAnswerRows } from '../support/fakes/memory-answer-rows.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { unavailable } from '../../src/model/refusals.ts';
import { MOST_DEAD_LETTERS, MOST_WAITING } from '../../src/services/webhooks/webhook-queue.ts';
import { anApprovingServer, approvalIdOf } from '../http/an-approving-server.ts';
import { freePorts } from '../../local-cluster/control-plane/free-ports.ts';
import { eventually } from '../support/harness/eventually.ts';
import {
  aReceiver,
  anApproval,
  GIVE_UP_MS,
  hang,
  isSigned,
  keptMarks,
  SECRET,
  someWebhooks,
  status,
  type Receiver,
  type TestWebhooks,
} from './webhook-support.ts';

describe('webhooks', () => {
  let receiver: Receiver;
  const stopped: { stop: () => unknown }[] = [];
  beforeEach(async () => {
    receiver = await aReceiver();
    stopped.push(receiver);
  });
  afterEach(async () => {
    for (const each of stopped.splice(0)) await each.stop();
  });

  const replica = (...given: Parameters<typeof someWebhooks>): TestWebhooks => {
    const made = someWebhooks(...given);
    stopped.push(made.webhooks);
    return made;
  };
  const aSecond = async (): Promise<Receiver> => {
    const made = await aReceiver();
    stopped.push(made);
    return made;
  };
  const waiting = ({ webhooks }: TestWebhooks, at = 0): number =>
    webhooks.report()[at]?.waiting ?? 0;
  const deadLetters = ({ webhooks }: TestWebhooks, at = 0) =>
    webhooks.report()[at]?.deadLetters ?? [];

  it('report the states of an approval, signed, without the content of the request', async () => {
    const { webhooks, clock } = replica([receiver.url]);
    const at = clock.now();
    const pending = anApproval('a', at);
    webhooks.note(pending);
    await receiver.got(1);
    clock.advance(1_500);
    const approved = {
      ...pending,
      status: 'approved',
      scope: 'once',
      decidedBy: 'olga',
      decidedAt: at + 1_500,
      reason: 'fine',
    } as const;
    webhooks.note(approved);
    await receiver.got(2);
    webhooks.note({
      ...approved,
      status: 'consumed',
      use: { at: at + 1_500, attempt: 1, settled: true },
    });
    await receiver.got(3);

    expect(receiver.received.map(({ headers }) => headers['x-sandpool-event'])).to.deep.equal([
      'approval.requested',
      'approval.decided',
      'approval.consumed',
    ]);
    expect(new Set(receiver.ids()).size).to.equal(3);
    for (const message of receiver.received) {
      expect(isSigned(message)).to.equal(true);
      expect(isSigned(message, 'another secret of ours')).to.equal(false);
      expect(isSigned({ ...message, body: `${message.body} ` })).to.equal(false);
      expect(message.body).not.to.match(/sealed|binding|idempotency|force=true/);
      expect(message.headers).to.include({
        'content-type': 'application/json',
        'user-agent': 'sandpool/test',
      });
    }
    const [, decided] = receiver.received;
    expect(decided?.headers['x-sandpool-timestamp']).to.equal(
      String(Math.floor((at + 1_500) / 1_000)),
    );
    expect(JSON.parse(decided?.body ?? '')).to.deep.equal({
      id: 'a.decided',
      event: 'approval.decided',
      time: '2026-01-01T00:00:01.500Z',
      clusterId: 'local',
      approval: {
        id: 'a',
        principal: { team: 'blue', user: 'ada', keyId: 'key-1' },
        operation: 'deletePool',
        method: 'DELETE',
        path: '/sandboxpools/web',
        route: 'REST DELETE /sandboxpools/{poolName}',
        namespace: 'blue',
        summary: 'Delete a pool: DELETE /sandboxpools/web',
        status: 'approved',
        createdAt: '2026-01-01T00:00:00.000Z',
        expiresAt: '2026-01-01T00:15:00.000Z',
        scope: 'once',
        decidedBy: 'olga',
        decidedAt: '2026-01-01T00:00:01.500Z',
        reason: 'fine',
      },
      url: 'https://console.example.com/console/approvals/a',
    });
  });

  it('are sent once for repeated records, and not for old ones', async () => {
    const { webhooks, clock } = replica([receiver.url]);
    webhooks.note(anApproval('old', clock.now() - GIVE_UP_MS));
    for (let n = 0; n < 3; n++) webhooks.note(anApproval('a', clock.now()));
    webhooks.lead(0);
    webhooks.note(anApproval('b', clock.now()));
    await receiver.got(2);

    expect(receiver.ids()).to.have.members(['a.requested', 'b.requested']);
  });

  it('that fail are retried at growing intervals, with the same id and a new timestamp', async () => {
    receiver.answers.push(status(500), status(404), status(429));
    const under = replica([receiver.url]);
    const { webhooks, clock, metrics } = under;
    const moments: number[] = [];
    webhooks.note(anApproval('a', clock.now()));
    for (let n = 1; n <= 4; n++) {
      await under.until(() => receiver.received.length >= n, `attempt ${n}`, 100);
      moments.push(Number(receiver.received[n - 1]?.headers['x-sandpool-timestamp']));
    }
    await eventually(() => waiting(under) === 0, 'it is taken');

    expect(new Set(receiver.ids())).to.deep.equal(new Set(['a.requested']));
    expect(receiver.received.every((message) => isSigned(message))).to.equal(true);
    const pauses = moments.slice(1).map((moment, n) => moment - (moments[n] ?? 0));
    expect(pauses[0]).to.be.at.least(1);
    expect(pauses[1]).to.be.at.least(2);
    expect(pauses[2]).to.be.at.least(4);
    const outcome = (name: 'delivered' | 'retried' | 'given-up') =>
      metrics.counted('sandpool_webhook_messages_total', { outcome: name });
    expect([outcome('delivered'), outcome('retried'), outcome('given-up')]).to.deep.equal([
      1, 3, 0,
    ]);
  });

  it('that hang time out, are retried, and do not delay others', async () => {
    const other = await aSecond();
    receiver.answers.push(hang);
    const under = replica([receiver.url, other.url]);
    under.webhooks.note(anApproval('a', under.clock.now()));
    await Promise.all([receiver.got(1), other.got(1)]);
    await eventually(() => waiting(under, 1) === 0, 'the other took it');
    expect(waiting(under, 0)).to.equal(1);

    under.clock.advance(10_000);
    await under.until(() => receiver.received.length === 2, 'it is told again');
    await eventually(() => waiting(under, 0) === 0, 'it is taken');

    expect([receiver.ids(), other.ids()]).to.deep.equal([
      ['a.requested', 'a.requested'],
      ['a.requested'],
    ]);
  });

  it('that redirect are not followed, and an undelivered message becomes a dead letter', async () => {
    const target = await aSecond();
    for (let n = 0; n < 200; n++) receiver.answers.push(status(307, { Location: target.url }));
    const under = replica([receiver.url]);
    under.webhooks.note(anApproval('a', under.clock.now()));
    await under.until(() => deadLetters(under).length === 1, 'it is given up', 30_000);

    expect(target.received).to.deep.equal([]);
    expect(receiver.received.length).to.be.within(10, 70);
    expect(waiting(under)).to.equal(0);
    const [letter] = deadLetters(under);
    expect(letter).to.deep.include({
      id: 'a.requested',
      event: 'approval.requested',
      approvalId: 'a',
      attempts: receiver.received.length,
      problem: 'status 307; redirects are not followed',
    });
    expect(under.log).to.have.length(1);
    expect(under.log[0]).to.include('webhook-not-delivered').and.include('"id":"a.requested"');
    expect(
      under.metrics.counted('sandpool_webhook_messages_total', { outcome: 'given-up' }),
    ).to.equal(1);
  });

  it('to a missing receiver report it, without secret, path or token in log or report', async () => {
    const [port] = await freePorts(1);
    const origin = `http://127.0.0.1:${port}`;
    const under = replica([`${origin}/hooks/secret-path?token=secret-token`]);
    under.webhooks.note(anApproval('a', under.clock.now()));
    await under.until(() => deadLetters(under).length === 1, 'it is given up', 30_000);

    const [report] = under.webhooks.report();
    const { address, deadLetters: letters } = report!;
    expect(address).to.equal(origin);
    expect(letters[0]?.problem).to.equal('not reached: ECONNREFUSED');
    const told = JSON.stringify([under.log, under.webhooks.report()]);
    for (const secret of [SECRET, 'secret-path', 'secret-token', 'sealed'])
      expect(told).not.to.include(secret);
  });

  it('have bounded queues and bounded dead letters', async () => {
    receiver.answers.push(...Array.from({ length: 8 }, () => hang));
    const under = replica([receiver.url]);
    const surplus = MOST_DEAD_LETTERS + 10;
    for (let n = 0; n < MOST_WAITING + surplus; n++)
      under.webhooks.note(anApproval(`a-${n}`, under.clock.now()));
    await receiver.got(4);

    expect(waiting(under)).to.equal(MOST_WAITING);
    expect(under.metrics.shown('sandpool_webhook_messages_waiting', {})).to.equal(MOST_WAITING);
    expect(receiver.received).to.have.length(4);
    expect(deadLetters(under)).to.have.length(MOST_DEAD_LETTERS);
    expect(deadLetters(under)[0]).to.include({
      id: `a-${MOST_WAITING + surplus - 1}.requested`,
      attempts: 0,
      problem: 'too many messages are waiting',
    });
  });

  it('are sent by the leader, or by the next leader if it failed to', async () => {
    const clock = new TestClock();
    const marks = aCoordination(clock);
    const [one, other] = [
      replica([receiver.url], { clock, marks }),
      replica([receiver.url], { clock, marks, leads: false }),
    ];
    const both = (id: string): void => {
      for (const { webhooks } of [one, other]) webhooks.note(anApproval(id, clock.now()));
    };
    both('a');
    await eventually(() => receiver.received.length === 1 && waiting(one) === 0, 'a is taken');
    receiver.answers.push(hang);
    both('b');
    await receiver.got(2);

    one.webhooks.stop();
    other.life.leads = true;
    for (let shard = 0; shard < 16; shard++) other.webhooks.lead(shard);
    await other.until(() => receiver.received.length >= 3 && waiting(other) === 0, 'b is told');

    expect(receiver.ids()).to.deep.equal(['a.requested', 'b.requested', 'b.requested']);
  });

  it('are sent again after a restart only if they were not accepted', async () => {
    const clock = new TestClock();
    const rows = new MemoryAnswerRows();
    const before = replica([receiver.url], { clock, marks: await keptMarks(clock, rows) });
    before.webhooks.note(anApproval('a', clock.now()));
    await eventually(() => rows.rows.size === 1 && waiting(before) === 0, 'a is taken');
    receiver.answers.push(hang);
    before.webhooks.note(anApproval('b', clock.now()));
    await receiver.got(2);
    before.webhooks.stop();

    const after = replica([receiver.url], { clock, marks: await keptMarks(clock, rows) });
    for (const id of ['a', 'b']) after.webhooks.note(anApproval(id, clock.now()));
    await eventually(() => waiting(after) === 0 && receiver.received.length >= 3, 'b is told');

    expect(receiver.ids()).to.deep.equal(['a.requested', 'b.requested', 'b.requested']);
  });

  it('are sent even if their delivery cannot be recorded', async () => {
    const away = async (): Promise<never> => {
      throw unavailable('away');
    };
    const under = replica([receiver.url], {
      marks: { openRequest: away, keepAnswer: away, giveUpRequest: away },
    });
    under.webhooks.note(anApproval('a', under.clock.now()));
    await eventually(() => receiver.received.length === 1 && waiting(under) === 0, 'it is told');

    expect(under.log).to.have.length(1);
  });

  it('do not delay requests or decisions', async () => {
    receiver.answers.push(hang, hang, hang);
    const under = await anApprovingServer(['require operation=createPool']);
    stopped.push(under);
    const { webhooks } = replica([receiver.url], { clock: under.clock });
    under.parts.mirror.follow(({ kind, record }) => {
      if (kind === 'put') webhooks.note(record);
    });
    const create = () =>
      under.server.tenant.post('/sandboxpools', {
        name: 'web',
        templateName: 'default',
        replicas: 1,
      });

    const id = approvalIdOf(await create());
    expect((await under.approve(id)).status).to.equal(200);
    expect((await create()).status).to.equal(201);
    await receiver.got(3);

    expect(receiver.received.map(({ headers }) => headers['x-sandpool-event'])).to.have.members([
      'approval.requested',
      'approval.decided',
      'approval.consumed',
    ]);
  });
});
