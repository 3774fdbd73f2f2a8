import { expect } from 'chai';
import { once } from 'node:events';
import { mock } from 'node:test';
import {
  InstanceGone,
  NotJoinable,
  OutcomeUnknown,
  type ExecRequest,
} from '../../src/contracts/sandbox-driver.ts';
import { WebSocket } from 'ws';
import { AGENT } from '../../src/k8s/sandboxes/pods/pod-agent.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';
import { aFakePod, type FakeLink, type FakePod } from './a-fake-pod-server.ts';

/** Of the order: all that came behind the token. */
const ordered = (link: FakeLink): string => link.came(0).split('go\0')[0]?.split(' \0')[1] ?? '';
const tokenIn = (link: FakeLink): string | undefined => /told\0(.*? )\0/.exec(link.came(0))?.[1];

describe('streams of a Pod', () => {
  let fake: FakePod | undefined;
  afterEach(async () => {
    await fake?.close();
    fake = undefined;
  });
  afterEach(() => mock.timers.reset());

  const pod = async (...args: Parameters<typeof aFakePod>): Promise<FakePod> =>
    (fake = await aFakePod(...args));
  const exec = ({ streams, pod: target }: FakePod, part: Partial<ExecRequest> = {}) =>
    streams.exec(
      target,
      { argv: ['cmd', 'a secret'], timeoutMs: 30_000, outputLimit: 100, ...part },
      new AbortController().signal,
    );

  describe('exec', () => {
    it('puts no part of the command into the address, and sends it only after the agent is there', async () => {
      const under = await pod(() => {});
      const running = exec(under, {
        env: { KEY: 'a secret value' },
        cwd: '/secret',
        stdin: 'the input',
      });
      await eventually(() => under.links.length === 1, 'a link is open');
      const [link] = under.links;
      if (!link) throw new Error('no link');
      link.ws.ping();
      await once(link.ws, 'pong'); // behind all that was sent when the link opened
      expect([link.came(0), link.came(255)]).to.deep.equal(['', '']);
      link.send(1, '41\n');
      await eventually(() => link.came(255) !== '', 'the order is whole');
      expect(decodeURIComponent(link.url.href)).not.to.include('secret');
      expect(link.authorization).to.equal('Bearer secret');
      expect(ordered(link)).to.equal(
        'cwd\0/secret\0env\0KEY=a secret value\0arg\0cmd\0arg\0a secret\0',
      );
      expect(link.came(0)).to.match(/go\0the input$/);
      link.send(1, 'out');
      link.send(2, `err${tokenIn(link)}7\n`);
      link.status(0);
      const outcome = await running;
      expect([String(outcome.stdout), String(outcome.stderr), outcome.exitCode]).to.deep.equal([
        'out',
        'err',
        7,
      ]);
    });

    it('opens its link while the Pod is read, and sends the command after the read', async () => {
      const under = await pod((link) => {
        link.send(1, '41\n');
      });
      let isRead = (): void => {};
      under.read = new Promise((resolve) => {
        isRead = resolve;
      });
      const running = exec(under);
      await eventually(() => under.links.length === 1, 'a link is open');
      const [link] = under.links;
      if (!link) throw new Error('no link');
      expect(link.came(0)).to.equal('');
      isRead();
      await eventually(() => link.came(255) !== '', 'the order is whole');
      link.send(2, `${tokenIn(link)}0\n`);
      link.status(0);
      expect(await running).to.deep.include({ exitCode: 0 });
    });

    it('sends no command to a Pod that proves unusable after the link opened', async () => {
      const under = await pod(
        (link) => {
          link.send(1, '41\n');
        },
        { status: { phase: 'Failed', reason: 'Evicted' } },
      );
      let isRead = (): void => {};
      under.read = new Promise((resolve) => {
        isRead = resolve;
      });
      const running = rejection(exec(under));
      await eventually(() => under.links.length === 1, 'a link is open');
      isRead();
      expect(await running).to.be.instanceOf(InstanceGone);
      await eventually(() => under.links[0]?.ws.readyState === WebSocket.CLOSED, 'it is closed');
      expect(under.links[0]?.came(0)).to.equal('');
    });

    it('starts nothing if its link opens while the daemon stops', async () => {
      const under = await pod((link) => link.send(1, '41\n'));
      const failed = rejection(exec(under));
      await under.streams.stop();

      const error = await failed;
      expect(error).to.be.instanceOf(NotJoinable);
      expect(error.message).to.include('the daemon stops');
      expect(under.links.map((link) => link.came(0))).to.deep.equal(['']);
    });

    it('finds the exit code in whatever pieces the output arrives', async () => {
      const under = await pod((link) => {
        for (const part of ['4', '1', '\no']) link.send(1, part);
        link.ws.on('message', () => {
          const token = tokenIn(link);
          if (token === undefined || link.came(255) === '') return;
          for (const byte of `some errors ${token}12\n, left over`) link.send(2, byte);
          for (const byte of `ut${token}12\nput`) link.send(1, byte);
          link.status(0);
        });
      });
      const outcome = await exec(under);
      expect([String(outcome.stdout), String(outcome.stderr), outcome.exitCode]).to.deep.equal([
        'output',
        'some errors , left over',
        12,
      ]);
      expect(outcome.truncated).to.equal(false);
    });

    it('reports that the end of stdout was lost', async () => {
      const under = await pod((link) => {
        link.send(1, '41\nthe first half');
        link.ws.on('message', () => {
          if (link.came(255) === '') return;
          link.send(2, `${tokenIn(link)}3\n`);
          link.status(0);
        });
      });
      const outcome = await exec(under);
      expect(outcome).to.include({ exitCode: 3, truncated: true });
      expect(String(outcome.stdout)).to.equal('the first half');
    });

    it('reports that the end of stderr was lost, and the exit code with it', async () => {
      const under = await pod((link) => {
        link.send(1, '41\n');
        link.ws.on('message', () => {
          if (link.came(255) === '') return;
          link.send(2, 'the first half');
          link.send(1, `all${tokenIn(link)}3\n`);
          link.status(0);
        });
      });
      const outcome = await exec(under);
      expect(outcome).to.include({ exitCode: 3, truncated: true });
      expect([String(outcome.stdout), String(outcome.stderr)]).to.deep.equal([
        'all',
        'the first half',
      ]);
    });

    it('waits for the end of the output after the exit code', async () => {
      const under = await pod((link) => {
        link.send(1, '41\n');
      });
      const running = exec(under);
      await eventually(() => under.links[0]?.came(255) === '\0', 'the order is whole');
      const [link] = under.links;
      if (!link) throw new Error('no link');
      const say = async (channel: number, words: string): Promise<void> => {
        link.send(channel, words);
        link.ws.ping();
        await once(link.ws, 'pong');
        mock.timers.tick(400); // more than the pause behind last words
      };
      mock.timers.enable({ apis: ['setTimeout'] });
      await say(2, `${tokenIn(link)}0\n`);
      await say(1, `late${tokenIn(link)}0\n`);
      const outcome = await running;
      expect(outcome).to.include({ exitCode: 0, truncated: false });
      expect(String(outcome.stdout)).to.equal('late');
    });

    it('treats a close without a status as a failure', async () => {
      const under = await pod((link) => {
        link.send(1, '41\n');
        link.ws.once('message', () => {
          link.ws.close(1000);
        });
      });
      expect(await rejection(exec(under))).to.be.instanceOf(OutcomeUnknown);
    });

    it("does not treat Success without the agent's end marker as exit code 0", async () => {
      const under = await pod((link) => {
        link.send(1, '41\nhalf of it');
        link.ws.once('message', () => {
          link.status(0);
        });
      });
      const failure = await rejection(exec(under));
      expect(failure)
        .to.be.instanceOf(OutcomeUnknown)
        .with.property('message')
        .that.includes('cut off');
    });

    it('returns the exit code of an agent that was killed before it sent one', async () => {
      const under = await pod((link) => {
        link.send(1, '41\n');
        link.ws.once('message', () => {
          link.status(137);
        });
      });
      expect(await exec(under)).to.deep.include({ exitCode: 137 });
    });

    it('kills a cancelled command once its unreachable kubelet is back', async () => {
      let away = 2;
      const under = await pod((link) => {
        if (link.command[1] === 'end') return link.status(0);
        under.refusal = {
          status: 500,
          body: 'error dialing backend: dial tcp: connection refused',
        };
        link.send(1, '41\n');
        link.ws.once('message', () => {
          link.ws.terminate();
        });
      });
      under.refused = () => {
        if (--away === 0) under.refusal = undefined;
      };
      expect(await rejection(exec(under))).to.be.instanceOf(OutcomeUnknown);
      await eventually(() => under.links.length === 2, 'it is ended');
      expect(under.links[1]?.command).to.deep.equal([AGENT, 'end', '41', '9']);
    });

    it('reports a missing agent, and other errors of the runtime', async () => {
      let words = `exec: "${AGENT}": stat ${AGENT}: no such file or directory`;
      const under = await pod((link) => {
        link.fail(words);
      });
      const refused = async (): Promise<string> => {
        const error = await rejection(exec(under));
        expect(error).to.be.instanceOf(NotJoinable);
        return error.message;
      };
      expect(await refused()).to.include("Sandpool's agent cannot run");
      words = 'the runtime is on fire';
      expect(await refused()).to.include('on fire');
    });

    it('explains why it cannot join, by the state of the container', async () => {
      const waiting = await pod(() => {}, {
        status: {
          phase: 'Pending',
          containerStatuses: [{ name: 'main', state: { waiting: { reason: 'ImagePullBackOff' } } }],
        },
      });
      expect(await rejection(exec(waiting)))
        .to.be.instanceOf(NotJoinable)
        .with.property('message')
        .that.includes('ImagePullBackOff');
      await waiting.close();
      const ended = await pod(() => {}, { status: { phase: 'Failed', reason: 'Evicted' } });
      expect(await rejection(exec(ended)))
        .to.be.instanceOf(InstanceGone)
        .with.property('message')
        .that.includes('Evicted');
    });

    it('kills a command at its timeout with a second one, and returns the output', async () => {
      const under = await pod((link) => {
        if (link.command[1] === 'end') return link.status(0);
        link.send(1, '41\nsome');
      });
      // long enough for a busy machine to have begun it
      expect(await exec(under, { timeoutMs: 3_000 })).to.deep.include({
        exitCode: 124,
        timedOut: true,
        stdout: Buffer.from('some'),
      });
      expect(under.links[1]?.command).to.deep.equal([AGENT, 'end', '41', '9']);
    });
  });

  describe('attach', () => {
    const attach = ({ streams, pod: target }: FakePod) =>
      streams.attach(target, { argv: ['bash'], cols: 80, rows: 24 });

    it('sends its size first, and settles after the last output was read', async () => {
      const under = await pod((link) => {
        link.send(1, '41\r\nprompt');
      });
      const terminal = await attach(under);
      const [link] = under.links;
      await eventually(() => link?.came(4) === '{"Width":80,"Height":24}', 'the size came');
      link?.send(1, ' bye');
      link?.status(4);
      let settled = false;
      void terminal.exit.then(() => {
        settled = true;
      });
      await new Promise((resolve) => {
        link?.ws.once('close', resolve);
      });
      expect(settled).to.equal(false);
      let text = '';
      terminal.stream.on('data', (chunk: Buffer) => {
        text += String(chunk);
      });
      expect(await terminal.exit).to.equal(4);
      expect(text).to.equal('prompt bye');
    });

    it('rejects if the runtime could not start it', async () => {
      const under = await pod((link) => {
        link.fail('no such device');
      });
      expect(await rejection(attach(under)))
        .to.be.instanceOf(NotJoinable)
        .with.property('message')
        .that.includes('no such device');
    });

    it('rejects with OutcomeUnknown if the link broke before the agent answered', async () => {
      const under = await pod((link) => {
        link.ws.terminate();
      });
      expect(await rejection(attach(under))).to.be.instanceOf(OutcomeUnknown);
    });
  });

  it('streams into a Pod that is gone', async () => {
    const under = await pod((link) => {
      if (link.command[1] === 'end') return link.fail('no such container');
      if (link.url.pathname.endsWith('exec')) link.send(1, '41\n');
      else for (const channel of [0, 1]) link.send(channel, Buffer.of(0x58, 0x1b));
    });
    const command = rejection(exec(under));
    const terminal = await under.streams.attach(under.pod, { argv: ['bash'], cols: 80, rows: 24 });
    const connection = await under.streams.dial(under.pod, 7_000, new AbortController().signal);
    const broken = once(connection, 'error');
    under.streams.gone('another');
    expect(connection.destroyed).to.equal(false);
    under.streams.gone(under.pod.uid);
    expect(await command).to.be.instanceOf(OutcomeUnknown);
    expect(await terminal.exit).to.equal(null);
    await broken;
  });

  describe('dial', () => {
    const prefixes = (link: FakeLink): void => {
      for (const channel of [0, 1]) link.send(channel, Buffer.of(0x58, 0x1b));
    };
    const dial = ({ streams, pod: target }: FakePod) =>
      streams.dial(target, 7_000, new AbortController().signal);

    it('ends when the port closes, and closes the link when it is destroyed', async () => {
      const under = await pod(prefixes);
      const stream = await dial(under);
      under.links[0]?.send(0, 'last words');
      under.links[0]?.ws.close(1000);
      let text = '';
      for await (const chunk of stream as AsyncIterable<Buffer>) text += String(chunk);
      expect(text).to.equal('last words');

      const another = await dial(under);
      another.destroy();
      await eventually(
        () => under.links[1]?.ws.readyState === WebSocket.CLOSED,
        'the link is closed',
      );
      expect(under.links[0]?.url.searchParams.get('ports')).to.equal('7000');
    });

    it('fails with an error if the port refuses late or the link breaks', async () => {
      const under = await pod(prefixes);
      const late = await dial(under);
      await late.taken;
      const refused = once(late, 'error');
      under.links[0]?.send(1, 'connection refused');
      expect(String((await refused)[0])).to.include('connection refused');
      const cut = await dial(under);
      await cut.taken;
      const broken = once(cut, 'error');
      under.links[1]?.ws.terminate();
      expect(String((await broken)[0])).to.include('lost');
    });
  });
});
