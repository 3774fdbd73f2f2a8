import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import type { AuditEntry } from '../../src/contracts/audit.ts';
import type { IdentityProvider } from '../../src/contracts/identity-provider.ts';
import { OperatorsFile } from '../../src/services/identity/operators-file.ts';
import { ConsoleAccess } from '../../src/services/console/console-access.ts';
import { LoginLimits } from '../../src/services/console/login-limits.ts';
import type { Coordination } from '../../src/contracts/coordination.ts';
import { heldSubject } from '../../src/http/corridor/held-subject.ts';
import { approvalParts } from '../../src/services/approvals/approval-parts.ts';
import { anEngine } from '../support/harness/engine-operations.ts';
import { MemoryApprovals } from '../support/fakes/memory-approvals.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { rulesOf, TERMS } from './an-approving-server.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { HttpClient, type HttpAnswer } from '../support/harness/http-client.ts';
import { aServer, type TestServer } from './a-server.ts';

export const PASSWORD = 'correct horse battery staple';

/** A server with a console, over real files and the embedded coordination. */
export interface ConsoleWorld {
  readonly server: TestServer;
  readonly access: ConsoleAccess;
  /** The same people and sessions in a daemon that has another provider, or none. */
  readonly accessWith: (other: IdentityProvider | undefined) => ConsoleAccess;
  readonly operators: OperatorsFile;
  readonly coordination: Coordination;
  readonly clock: TestClock;
  readonly audit: AuditEntry[];
  readonly approvals: MemoryApprovals;
  readonly site: string;
  /** A browser without cookies. */
  readonly browser: () => Browser;
  readonly stop: () => Promise<void>;
}

export const aConsole = async ({
  provider,
  approvals = [],
  url,
}: {
  readonly provider?: IdentityProvider;
  /** Rules by which requests wait for a person. */
  readonly approvals?: readonly string[];
  readonly url?: string;
} = {}): Promise<ConsoleWorld> => {
  const folder = mkdtempSync(join(tmpdir(), 'console-'));
  const clock = new TestClock();
  const coordination = aCoordination(clock);
  const operators = new OperatorsFile(join(folder, 'operators.json'));
  const audit: AuditEntry[] = [];
  const accessWith = (other: IdentityProvider | undefined) =>
    new ConsoleAccess({
      sessions: coordination,
      tokens: coordination,
      operators,
      passwords: quickPasswords,
      limits: new LoginLimits(coordination, randomBytes(32)),
      provider: other,
      sealKey: randomBytes(32),
      clock,
      audit: { note: (entry) => void audit.push(entry), count: () => undefined },
    });
  const access = accessWith(provider);
  const fake = anEngine();
  const records = new MemoryApprovals();
  const held = approvalParts({
    approvals: records,
    clock,
    log: quietLog,
    pepper: randomBytes(32),
    rules: rulesOf(...approvals),
    terms: TERMS,
    severalDecide: () => operators.list().length > 1,
  });
  await held.mirror.start();
  Object.assign(fake, held.operations);
  const server = await aServer({
    operations: fake,
    gating: { gate: held.gate, subjectOf: heldSubject(fake) },
    console: { people: access, url },
    audit: { note: (entry) => void audit.push(entry), count: () => undefined },
  });
  const site = `http://127.0.0.1:${server.port}`;
  const browsers: Browser[] = [];
  return {
    server,
    access,
    accessWith,
    operators,
    coordination,
    clock,
    audit,
    approvals: records,
    site,
    browser: () => {
      const browser = new Browser(server.port, site);
      browsers.push(browser);
      return browser;
    },
    stop: async () => {
      for (const browser of browsers) browser.close();
      await server.stop();
      rmSync(folder, { recursive: true, maxRetries: 5 });
    },
  };
};

/** Passwords are looked at without the time that argon2 takes: test/identity shows that. */
const quickPasswords = {
  hash: async (password: string) => `$argon2id$${password}`,
  verify: async (password: string, hash: string | undefined) => hash === `$argon2id$${password}`,
};

export const anOperator = (
  world: Pick<ConsoleWorld, 'operators'>,
  name: string,
  role: 'viewer' | 'operator' | 'admin' = 'operator',
): void =>
  world.operators.put({
    name,
    role,
    passwordHash: `$argon2id$${PASSWORD}`,
    users: [],
    addedAt: '2026-01-01T00:00:00Z',
  });

/** Keeps cookies as a browser does, and sends forms with an Origin. */
export class Browser {
  readonly cookies = new Map<string, string>();
  readonly #client: HttpClient;
  readonly #site: string;

  constructor(port: number, site: string) {
    this.#client = new HttpClient(port);
    this.#site = site;
  }

  async get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<HttpAnswer> {
    return this.#kept(await this.#client.get(path, { headers: { ...this.#cookie(), ...headers } }));
  }

  async post(
    path: string,
    fields: Readonly<Record<string, string>>,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<HttpAnswer> {
    return this.#kept(
      await this.#client.post(path, undefined, {
        raw: new URLSearchParams(fields).toString(),
        headers: {
          'Content-Type': 'application/x-www-form-urlencoded',
          Origin: this.#site,
          ...this.#cookie(),
          ...headers,
        },
      }),
    );
  }

  logIn(name: string, password = PASSWORD): Promise<HttpAnswer> {
    return this.post('/console/login', { name, password });
  }

  /** The token that the forms of a page carry. */
  async csrf(path = '/console/sessions'): Promise<string> {
    const { text } = await this.get(path);
    return /name="csrf"\s+value="([^"]+)"/.exec(text)?.[1] ?? '';
  }

  async isLoggedIn(): Promise<boolean> {
    return (await this.get('/console/sessions')).status === 200;
  }

  close(): void {
    this.#client.close();
  }

  #cookie(): Readonly<Record<string, string>> {
    if (this.cookies.size === 0) return {};
    return { Cookie: [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ') };
  }

  #kept(answer: HttpAnswer): HttpAnswer {
    for (const line of (answer.headers['set-cookie'] ?? '').split(/,(?=__Host-)/)) {
      if (line === '') continue;
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (/Max-Age=0/.test(line)) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return answer;
  }
}
