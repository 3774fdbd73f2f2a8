import { expect } from 'chai';
import { sqliteDeadLetters } from '../../src/embedded/store/dead-letters.ts';
import { aDatabase, aFolder } from '../embedded/store/a-database.ts';
import { aDeadLetter, deadLettersSuite } from '../contracts/dead-letters.ts';
import { MemoryDeadLetters } from '../support/fakes/memory-dead-letters.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import {
  aReceiver,
  anApproval,
  isSigned,
  someWebhooks,
  status,
  type Receiver,
  type TestWebhooks,
} from './webhook-support.ts';

deadLettersSuite('in memory', async () => {
  const clock = new TestClock();
  return {
    letters: new MemoryDeadLetters(clock),
    advance: (ms) => clock.advance(ms),
    close: async () => undefined,
  };
});

deadLettersSuite('in SQLite', async () => {
  const { database, close } = await aDatabase();
  const clock = new TestClock();
  return {
    letters: sqliteDeadLetters(database, clock),
    advance: (ms) => clock.advance(ms),
    close,
  };
});

describe('dead letters', () => {
  let receiver: Receiver;
  const replicas: TestWebhooks[] = [];
  const clock = new TestClock();
  let letters: MemoryDeadLetters;
  beforeEach(async () => {
    receiver = await aReceiver();
    letters = new MemoryDeadLetters(clock);
  });
  afterEach(async () => {
    for (const { webhooks } of replicas.splice(0)) webhooks.stop();
    await receiver.stop();
  });

  const replica = (urls = [receiver.url]): TestWebhooks => {
    const made = someWebhooks(urls, { clock, deadLetters: letters });
    replicas.push(made);
    return made;
  };
  const kept = async ({ webhooks }: TestWebhooks) => (await webhooks.deadLetters())[0]?.deadLetters;
  const keeps = (under: TestWebhooks, count: number): Promise<void> =>
    eventually(async () => (await kept(under))?.length === count, `${count} are kept`);
  /** Fails until it is given up. */
  const aDead = async (under: TestWebhooks, id: string): Promise<void> => {
    receiver.answers.push(...Array.from({ length: 100 }, () => status(500)));
    under.webhooks.note(anApproval(id, clock.now()));
    await under.until(
      () => (under.webhooks.report()[0]?.deadLetters.length ?? 0) > 0,
      'it is given up',
      30_000,
    );
    receiver.answers.length = 0;
    receiver.received.length = 0;
  };

  it('are shared by all replicas, and sent again by any, with a new signature, until they are accepted', async () => {
    const one = replica();
    await aDead(one, 'a');
    await keeps(one, 1);
    one.webhooks.stop();

    const other = replica();
    expect((await kept(other))?.[0]).to.include({ id: 'a.requested', problem: 'status 500' });
    receiver.answers.push(status(503));
    expect(await other.webhooks.revive('another')).to.equal(0);
    expect(await other.webhooks.revive('a.requested')).to.equal(1);
    await receiver.got(1);
    expect(await kept(other), 'it is kept until it is taken').to.have.length(1);
    expect(await other.webhooks.revive(undefined), 'it is under way').to.equal(1);
    await other.until(() => receiver.received.length === 2, 'it is sent again');
    await keeps(other, 0);

    expect(receiver.ids()).to.deep.equal(['a.requested', 'a.requested']);
    expect(receiver.received.every((message) => isSigned(message))).to.equal(true);
  });

  it('that are refused again stay, with the last error', async () => {
    const under = replica();
    await aDead(under, 'a');
    await keeps(under, 1);
    receiver.answers.push(...Array.from({ length: 100 }, () => status(404)));
    await under.webhooks.revive(undefined);
    await under.until(
      () => under.webhooks.report()[0]?.deadLetters.length === 2,
      'given up again',
      30_000,
    );
    await eventually(async () => (await kept(under))?.[0]?.problem === 'status 404', 'it says why');

    expect(await kept(under)).to.have.length(1);
  });

  it('that cannot be stored are logged, and delay nothing', async () => {
    const under = replica();
    letters.away = true;
    await aDead(under, 'a');
    await eventually(
      () => under.log.some((line) => line.startsWith('dead-letter-not-stored')),
      'the log says so',
    );
    under.webhooks.note(anApproval('b', clock.now()));
    await receiver.got(1);

    expect(receiver.ids()).to.deep.equal(['b.requested']);
  });

  it('stay on disk over a restart', async () => {
    const folder = aFolder();
    const before = await aDatabase({}, folder);
    await sqliteDeadLetters(before.database, clock).keep('one', aDeadLetter('a'));
    await before.database.close();
    const after = await aDatabase({}, folder);

    expect(await sqliteDeadLetters(after.database, clock).of('one')).to.deep.equal([
      aDeadLetter('a'),
    ]);
    await after.close();
  });
});
