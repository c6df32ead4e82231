// Which tenant is looked at: the key's own, or for the operator any.
import { html, useDebounced, useEffect, useLoaded, useRef, useSignal, useState } from "./core.js";
import { get } from "../api.js";
import { Input } from "./form.js";
import { setQuery } from "../router.js";
import { session } from "../session.js";
import { t } from "../strings.js";

const OPERATOR_TENANT = "default"; // the tenant whose admins are operators
const PAUSE = 300; // milliseconds without a key before another tenant is asked about

/** Whether the key is an operator's, as far as the console can tell; the server decides. */
export function useOperator() {
  const current = useSignal(session);
  return current?.role === "admin" && current.tenant === OPERATOR_TENANT;
}

/** A field for the tenant in the address; nothing for keys that see one tenant. @param {{ tenant: string | null }} props */
export function TenantInput({ tenant }) {
  return useOperator() ? html`<${Choice} tenant=${tenant} />` : null;
}

/** @param {{ tenant: string | null }} props */
function Choice({ tenant }) {
  const [text, setText] = useState(tenant ?? "");
  const written = useRef(tenant ?? "");
  const settled = useDebounced(text.trim(), PAUSE);
  const known = useLoaded("tenants", (abort) => /** @type {Promise<import("../api.js").Result<{ data: import("../types.js").Tenant[] }>>} */ (get("/v1/admin/tenants", { query: { limit: 1000 }, abort })));
  useEffect(() => {
    if (settled !== written.current) {
      written.current = settled;
      setQuery({ tenant: settled });
    }
  }, [settled]);
  useEffect(() => {
    if ((tenant ?? "") !== written.current) { // the address has changed, by going back for example
      written.current = tenant ?? "";
      setText(tenant ?? "");
    }
  }, [tenant]);
  return html`<${Input} label=${t.admin.tenant} value=${text} onInput=${setText} placeholder=${OPERATOR_TENANT} list=${(known.data?.data ?? []).map((one) => ({ value: one.name }))} />`;
}
