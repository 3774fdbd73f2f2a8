import { isUtf8 } from 'node:buffer';
import { APPROVAL_STATUSES, type ApprovalRecord } from '../../model/approvals/approval.ts';
import { HELD_OPERATIONS } from '../../model/approvals/held-operations.ts';
import { mayDecide } from '../../model/console-session.ts';
import { Refusal } from '../../model/refusals.ts';
import type { OpenSession } from '../../services/console/console-operations.ts';
import type { Operations } from '../../services/operations.ts';
import { DecideApprovalBody } from '../resources/approvals/schema.ts';
import { timestampOf } from '../corridor/common-schema.ts';
import type { Route } from '../corridor/route.ts';
import { check } from '../corridor/validation.ts';
import type { ConsoleRoute } from './console-route.ts';
import { LIST, listBody, PAGE } from './approval-list.ts';
import { changesOf, currentState, runningIn, type FieldChange } from './current-state.ts';
import { html, short, type Html } from './html.ts';
import { csrfField, givePage, seeOther } from './page.ts';

export interface ApprovalPagesDeps {
  readonly operations: Pick<
    Operations,
    'listApprovals' | 'getApproval' | 'approvalContent' | 'decideApproval' | 'getApiKey'
  >;
  /** For reading the current state. */
  readonly routes: readonly Route[];
}

/** Pages on which a person reads and decides pending requests. */
export const approvalPages = ({
  operations,
  routes,
}: ApprovalPagesDeps): readonly ConsoleRoute[] => {
  const stateOf = currentState(routes);
  const nameOfKey = async ({ principal }: ApprovalRecord): Promise<string | undefined> => {
    try {
      const { shortName } = await operations.getApiKey(
        { ...principal, role: 'admin' },
        principal.keyId,
      );
      return shortName;
    } catch (error) {
      if (error instanceof Refusal) return undefined; // the key is revoked, or belongs to a manager
      throw error;
    }
  };
  return [
    {
      method: 'GET',
      path: LIST,
      operation: 'getApprovalsPage',
      handle: async ({ context, session }) => {
        if (!session) return;
        const query = new URLSearchParams(context.querystring);
        const status = APPROVAL_STATUSES.find((each) => each === query.get('status'));
        const offset = Math.min(
          Number(/^\d{1,6}$/.exec(query.get('offset') ?? '')?.[0] ?? 0),
          MOST,
        );
        const { items, total } = await operations.listApprovals(session.person, status, {
          limit: PAGE,
          offset,
        });
        givePage(context, {
          title: 'Approvals',
          session,
          body: listBody(items, { status, offset, total }),
        });
      },
    },
    {
      method: 'GET',
      path: `${LIST}/*`,
      operation: 'getApprovalPage',
      handle: async ({ context, session, rest }) => {
        if (!session) return;
        const { person } = session;
        const record = await operations.getApproval(person, rest);
        const content = await operations
          .approvalContent(person, rest)
          .catch(unreadableWhereRefused);
        const isShown = record.status === 'pending' && SHOWN_BEFORE.has(methodOf(record));
        const current = isShown ? await stateOf(record) : undefined;
        givePage(context, {
          title: 'Approval',
          session,
          body: approvalBody({
            record,
            content,
            current,
            session,
            keyName: await nameOfKey(record),
          }),
        });
      },
    },
    {
      method: 'POST',
      path: `${LIST}/*`,
      operation: 'decideApproval',
      handle: async ({ context, session, rest, fields }) => {
        if (!session) return;
        context.state.approvalId = rest;
        if (!session.isFresh) return seeOther(context, loginAgain(rest));
        const reason = fields.get('reason') ?? '';
        const { decision, scope = 'once' } = check(DecideApprovalBody, {
          decision: fields.get('decision'),
          scope: fields.get('scope') ?? 'once',
          reason: reason || undefined,
        });
        context.state.asked = { decision, scope };
        await operations.decideApproval(session.person, rest, {
          decision,
          scope,
          reason: reason || undefined,
        });
        seeOther(context, `${LIST}/${rest}`);
      },
    },
  ];
};

/** The page renders even if the body can't be decrypted. */
const unreadableWhereRefused = (error: unknown): typeof UNREADABLE => {
  if (error instanceof Refusal && error.code === 'UNAVAILABLE') return UNREADABLE;
  throw error;
};

const UNREADABLE = 'unreadable';
const MOST = 100_000;
/** They change an existing resource: show its state. */
const SHOWN_BEFORE: ReadonlySet<string> = new Set(['PUT', 'PATCH', 'DELETE']);

const methodOf = ({ operation, method }: ApprovalRecord): string =>
  Object.hasOwn(HELD_OPERATIONS, operation)
    ? (HELD_OPERATIONS[operation]?.split(' ')[0] ?? method)
    : method;

const loginAgain = (id: string): string => `/console/login?next=${LIST}/${id}`;

interface Shown {
  readonly record: ApprovalRecord;
  readonly content: Buffer | typeof UNREADABLE | undefined;
  readonly current: Readonly<Record<string, unknown>> | undefined;
  readonly session: OpenSession;
  /** Undefined if the key is unknown here. */
  readonly keyName: string | undefined;
}

const approvalBody = (shown: Shown): Html =>
  html`${factsOf(shown)}
    <h2>The request, as it came</h2>
    ${requestOf(shown)} ${consequencesOf(shown)} ${decisionForms(shown)}`;

const factsOf = ({ record, keyName }: Shown): Html => {
  const { principal } = record;
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['What', record.summary],
    ['Request', record.route],
    ['Status', record.status],
    ['Requested by', `${principal.team}/${principal.user}`],
    [
      'With the key',
      `${keyName ?? 'no key of this cluster'}: ${principal.keyId} (${principal.role})`,
    ],
    ['Users of the keys, up to the first creator', principal.persons.join(', ')],
    ['In session', record.sessionId],
    ['Requested at', timestampOf(record.createdAt)],
    [record.status === 'pending' ? 'Decision due' : 'Valid until', timestampOf(record.expiresAt)],
    ['Decided by', record.decidedBy],
    ['Decided at', timestampOf(record.decidedAt)],
    ['For', record.scope],
    ['Reason', record.reason],
  ];
  return html`<table class="facts">
    <tbody>
      ${rows.map(([name, value]) =>
        value === undefined
          ? undefined
          : html`<tr>
              <th>${name}</th>
              <td>${short(value)}</td>
            </tr> `,
      )}
    </tbody>
  </table>`;
};

/** Shows every byte of the request. */
const requestOf = ({ record, content, session: { person } }: Shown): Html => {
  const { method, path, query, namespace, headers } = record;
  const head = [
    `${method} ${path}${query === '' ? '' : `?${query}`}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ].join('\n');
  return html`<p>In the namespace ${short(namespace)}</p>
    ${given(head)}
    ${
      content === UNREADABLE
        ? html`<p class="error" role="alert">
            What was sent can’t be read: it was sealed with another pepper. Nobody approves what
            they can’t see; deny it, and have it asked again.
          </p>`
        : content !== undefined
          ? bodyOf(content)
          : html`<p>${mayDecide(person) ? 'No body.' : 'Only operators can see the body.'}</p>`
    }${ignoredOf(record)}`;
};

const ignoredOf = ({ ignored = [] }: ApprovalRecord): Html | undefined =>
  ignored.length === 0
    ? undefined
    : html`<p>Fields of the body that have no effect: ${short(ignored.join(', '))}</p>`;

const bodyOf = (content: Buffer): Html =>
  isUtf8(content)
    ? html`<p>
          Body, ${content.length} bytes in ${content.toString('utf8').split('\n').length} lines:
        </p>
        ${given(content.toString('utf8'))}`
    : html`<p>Body, ${content.length} bytes that are no text, in hexadecimal:</p>
        ${given(content.toString('hex').replaceAll(/(.{64})/g, '$1\n'))}`;

const consequencesOf = ({ record, content, current }: Shown): Html | undefined => {
  if (record.status !== 'pending') return undefined;
  if (methodOf(record) === 'DELETE') {
    const running = runningIn(current);
    return html`<h2>What it would end</h2>
      <p>
        ${
          running === undefined
            ? 'The number of sandboxes that run in it is unknown.'
            : html`Sandboxes that run in it now: <strong>${running}</strong>`
        }
      </p>`;
  }
  if (!SHOWN_BEFORE.has(methodOf(record))) return undefined;
  if (content === UNREADABLE) return undefined;
  const changes = changesOf(parsed(content), current);
  if (!changes) return undefined;
  return html`<h2>What it would change</h2>
    ${
      current === undefined
        ? html`<p>The current state can’t be read.</p>`
        : html`<p>
            Fields that it sets, beside what the API shows now. The request above is what counts.
          </p>`
    }
    <table>
      <thead>
        <tr>
          <th>Field</th>
          <th>Now</th>
          <th>Then</th>
        </tr>
      </thead>
      <tbody>
        ${changes.shown.map(changeRow)}
      </tbody>
    </table>
    ${
      changes.more > 0
        ? html`<p class="error">
            It sets <strong>${changes.more}</strong> fields more, which the request above has.
          </p>`
        : undefined
    }`;
};

const changeRow = ({ field, before, after }: FieldChange): Html =>
  html`<tr>
    <td>${short(field)}</td>
    <td>${before === undefined ? 'not shown' : marked(before, before === after ? '' : 'gone')}</td>
    <td>${marked(after, before === after ? '' : 'come')}</td>
  </tr> `;

const decisionForms = ({ record, session, content }: Shown): Html | undefined => {
  const { person, csrf } = session;
  if (record.status !== 'pending') return undefined;
  if (!mayDecide(person)) return html`<p>An operator decides; you are a viewer.</p>`;
  if (!session.isFresh)
    return html`<p>
      <a href="${loginAgain(record.id)}">Log in again</a> to decide: it is more than 15 minutes
      since you did.
    </p>`;
  return html`<h2>Decide</h2>
    <div class="actions">
      ${content === UNREADABLE ? undefined : approveForm(record, csrf)}
      <form method="post" action="${LIST}/${record.id}">
        ${csrfField(csrf)}
        <input type="hidden" name="decision" value="deny" />
        <label>Reason <textarea name="reason" maxlength="1000" required></textarea></label>
        <button>Deny</button>
      </form>
    </div>`;
};

const approveForm = (record: ApprovalRecord, csrf: string): Html =>
  html`<form method="post" action="${LIST}/${record.id}">
    ${csrfField(csrf)}
    <input type="hidden" name="decision" value="approve" />
    <label><input type="radio" name="scope" value="once" checked /> this request, once</label>
    ${
      !record.onceOnly && record.sessionId !== undefined
        ? html`<label
            ><input type="radio" name="scope" value="session" /> every ${record.operation}
            (${record.route ?? record.method}) of this key in its session</label
          >`
        : undefined
    }
    <button>Approve</button>
  </form>`;

const parsed = (content: Buffer | undefined): unknown => {
  try {
    return JSON.parse(content?.toString('utf8') ?? '');
  } catch {
    return undefined;
  }
};

/** Browsers drop the leading line break. */
const given = (text: string): Html => html`<pre class="given">${'\n'}${text}</pre>`;
const marked = (text: string, kind: string): Html =>
  html`<span class="given short ${kind}">${text}</span>`;
