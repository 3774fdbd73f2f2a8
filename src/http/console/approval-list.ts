import { APPROVAL_STATUSES, type ApprovalRecord } from '../../model/approvals/approval.ts';
import { timestampOf } from '../corridor/common-schema.ts';
import { html, short, type Html } from './html.ts';

export const PAGE = 50;
export const LIST = '/console/approvals';

export const listBody = (
  items: readonly ApprovalRecord[],
  {
    status,
    offset,
    total,
  }: { readonly status: string | undefined; readonly offset: number; readonly total: number },
): Html => {
  const of = status === undefined ? '' : `status=${status}&`;
  return html`<p>
      ${[undefined, ...APPROVAL_STATUSES].map(
        (each) =>
          html`<a
            href="${LIST}${each === undefined ? '' : `?status=${each}`}"
            ${each === status ? html`aria-current="page"` : undefined}
            >${each ?? 'all'}</a
          > `,
      )}
    </p>
    <p>${total} in all</p>
    <table>
      <thead>
        <tr>
          <th>Request</th>
          <th>Asked by</th>
          <th>At</th>
          <th>Status</th>
        </tr>
      </thead>
      <tbody>
        ${items.map(rowOf)}
      </tbody>
    </table>
    <p>
      ${offset > 0 ? pageLink(of, Math.max(0, offset - PAGE), 'newer') : undefined}
      ${offset + PAGE < total ? pageLink(of, offset + PAGE, 'older') : undefined}
    </p>`;
};

const pageLink = (of: string, offset: number, name: string): Html =>
  html`<a href="${LIST}?${of}offset=${offset}">${name}</a>`;

const rowOf = (record: ApprovalRecord): Html =>
  html`<tr>
    <td>
      <a href="${LIST}/${record.id}">${record.operation}</a>
      ${short(`${record.method} ${record.path}`)}
    </td>
    <td>${short(`${record.principal.team}/${record.principal.user}`)}</td>
    <td>${timestampOf(record.createdAt)}</td>
    <td>${record.status}</td>
  </tr>`;
